"""What the demo's child processes do: one receives, two dispatch.

A child says what it does in JSON lines on stdout, and ends when its stdin does: it cannot
outlive its parent, however that dies.
"""

import json
import os
import sys
import threading
from typing import Any

from lease.delivery import HttpSender
from lease.dispatcher import Dispatcher, Result
from lease.inbox.http import serve
from lease.model import Event, Send

_BASE_MS = 100
_CAP_MS = 1000


def main(role: str, options: dict[str, Any]) -> None:
    """Play one role to its end."""
    parent = _Parent()
    if role == "receive":
        receive(parent, **options)
    else:
        dispatch(parent, **options)


def receive(parent: "_Parent", inbox: str) -> None:
    """Accept events on a free port of the loopback interface until terminated."""
    serve(inbox, on_ready=lambda url: parent.tell("ready", url=url))


def dispatch(
    parent: "_Parent",
    queue: str,
    url: str,
    owner: str,
    lease_ms: int,
    timeout_s: float,
    hold_at: int | None,
) -> None:
    """Deliver jobs once the parent says so, until none is open or the time to hold has come."""
    with HttpSender(url, timeout_s=timeout_s) as sender:
        dispatcher = Dispatcher(
            queue,
            Announced(sender, parent, hold_at),
            owner=owner,
            lease_ms=lease_ms,
            base_ms=_BASE_MS,
            cap_ms=_CAP_MS,
            on_result=lambda result: _tell_result(parent, result),
            on_idle=lambda due_in_ms: parent.tell("idle", due_in_ms=due_in_ms),
        )
        parent.tell("ready")
        parent.wait_for_go()
        dispatcher.run("drained")
    parent.tell("drained")


class Announced:
    """A sender that says what it sends, and stays for ever in the gap after one of its jobs.

    Args:
        send: the sender.
        parent: told of each event before it is sent, and of the one that is held.
        hold_at: number of the accepted event, from 1, after which nothing happens any more: the
            receiver has committed it, and the queue is never told. None never holds.
    """

    def __init__(self, send: Send, parent: "_Parent", hold_at: int | None) -> None:
        self._send = send
        self._parent = parent
        self._hold_at = hold_at
        self._accepted = 0

    def __call__(self, event: Event) -> object:
        """Send an event once, as the sender does."""
        is_last = self._accepted + 1 == self._hold_at
        self._parent.tell("sending", id=event["id"], is_last=is_last)
        answer = self._send(event)
        if answer is True:
            self._accepted += 1
            if is_last:
                self._parent.tell("accepted", id=event["id"])
                self._parent.wait_for_ever()
        return answer


def _tell_result(parent: "_Parent", result: Result) -> None:
    parent.tell(
        "result",
        id=result.id,
        token=result.token,
        status=result.status,
        error=None if result.error is None else str(result.error),
    )


class _Parent:
    """The parent at the other end of stdin and stdout."""

    def __init__(self) -> None:
        self._go = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def tell(self, word: str, **details: object) -> None:
        """Say one thing."""
        os.write(sys.stdout.fileno(), json.dumps({"word": word, **details}).encode() + b"\n")

    def wait_for_go(self) -> None:
        """Wait until the parent says so."""
        self._go.wait()

    def wait_for_ever(self) -> None:
        """Wait for the parent to end this process."""
        threading.Event().wait()

    def _listen(self) -> None:
        while os.read(sys.stdin.fileno(), 1):
            self._go.set()
        os._exit(1)
