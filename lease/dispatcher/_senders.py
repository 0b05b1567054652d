"""Sending, in the thread that runs or in several threads of their own."""

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol

from lease import checks
from lease.dispatcher._hand import Hand
from lease.dispatcher._mail import Answer, Mail
from lease.errors import BadAck, Permanent, Retryable
from lease.model import Event, Send

FORKED = (
    "a forked child must not use its parent's queue file; start another Dispatcher in the child"
)


class Senders(Protocol):
    """Answers each job that is handed in with one `Answer` in the mail."""

    def start(self) -> None:
        """Have the threads ready."""

    def hand(self, hand: Hand) -> None:
        """Have a job sent."""

    def lend(self) -> None:
        """Use the thread that runs, which has nothing else to do until an answer comes."""

    def end(self, *, is_idle: bool) -> None:
        """Let the threads go; wait for them if all have answered, for a send may never end."""


def senders(concurrency: int, send: Send, mail: Mail, now: Callable[[], int]) -> Senders:
    """Return what sends so many jobs at a time."""
    if concurrency > 1:
        return SenderThreads(concurrency, send, mail)
    return InlineSender(send, mail, now)


class InlineSender:
    """Sends in the thread that runs, one job after the other."""

    def __init__(self, send: Send, mail: Mail, now: Callable[[], int]) -> None:
        self._send = send
        self._mail = mail
        self._now = now
        self._hands: list[Hand] = []

    def start(self) -> None:
        """Do nothing: there is no thread."""

    def hand(self, hand: Hand) -> None:
        """Keep a job until the thread has time: the result before it is told first."""
        self._hands.append(hand)

    def lend(self) -> None:
        """Send what was handed in, and return when that is over."""
        while self._hands:
            now_ms = self._now()
            hand = self._hands.pop(0)
            # Telling may have taken longer than a lease that could not be renewed.
            if hand.is_lost or hand.ticket["lease_until"] <= now_ms:
                hand.is_lost = True
                self._mail.put(Answer(hand, None, None))
            else:
                self._mail.put(_answer(self._send, hand))

    def end(self, *, is_idle: bool) -> None:
        """Do nothing: there is no thread."""


class SenderThreads:
    """Sends in threads that wait for jobs.

    They are daemons: a send that never ends must not keep a process alive that was interrupted.
    """

    def __init__(self, concurrency: int, send: Send, mail: Mail) -> None:
        self._concurrency = concurrency
        self._send = send
        self._mail = mail
        self._pid = os.getpid()
        self._hands: SimpleQueue[Hand | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads, if that has not been done."""
        while len(self._threads) < self._concurrency:
            name = f"lease-sender-{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def hand(self, hand: Hand) -> None:
        """Give a job to the next free thread."""
        self._hands.put(hand)

    def lend(self) -> None:
        """Do nothing: there are threads of its own."""

    def end(self, *, is_idle: bool) -> None:
        """Let each thread end after its send, and wait for that if there is none."""
        for _ in self._threads:
            self._hands.put(None)
        if is_idle:
            for thread in self._threads:
                thread.join()

    def _work(self) -> None:
        while (hand := self._hands.get()) is not None:
            answer = _answer(self._send, hand)
            if os.getpid() != self._pid:
                # There is nobody here to tell; the parent's thread has its own answer.
                raise RuntimeError(FORKED)
            self._mail.put(answer)


def _answer(send: Send, hand: Hand) -> Answer:
    """Send a job's event, its own copy, and judge what that comes to."""
    try:
        answer = send(Event(id=hand.ticket["id"], qty=hand.ticket["qty"]))
    except Retryable as error:
        return Answer(hand, "retry", error)
    except Permanent as error:
        return Answer(hand, "permanent", error)
    except BaseException as error:  # noqa: BLE001  (whoever reads the mail tells them apart)
        hand.is_let_go = True
        return Answer(hand, None, error)
    if answer is True:
        return Answer(hand, "ok", None)
    hand.is_let_go = True
    return Answer(hand, None, BadAck(f"send returned {checks.shown(answer)}, not True"))
