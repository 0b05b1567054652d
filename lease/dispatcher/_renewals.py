"""Renew the leases of slow sends, in a thread that neither a send nor a callback can hold up.

It has a connection of its own. The thread that runs could not do this: with one send at a time
the send is in that thread, and with more of them the callbacks are.
"""

import sqlite3
import threading
from collections.abc import Callable
from functools import partial

from lease import checks, jobs
from lease.db.locked import is_full, is_locked
from lease.dispatcher._hand import Hand
from lease.dispatcher._mail import Mail, Trouble
from lease.dispatcher._model import Options
from lease.dispatcher._turns import Turns
from lease.model import Ticket

# A lease is renewed at the first look after half of it has passed, hence with more than a third
# of it left; and if that fails there are looks to come.
_LOOKS = 8

# The shortest leases end before a commit does; nobody can keep those.
_FINEST_S = 0.005


class Renewals:
    """Keeps the leases of all jobs in hand.

    Args:
        options: of the dispatcher.
        turns: in which the tickets change.
        mail: told of trouble, and of what ends the run.
    """

    def __init__(self, options: Options, turns: Turns, mail: Mail) -> None:
        self._options = options
        self._turns = turns
        self._mail = mail
        self._hands: dict[Hand, None] = {}
        self._is_in_trouble = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look after the jobs in hand, if that has not begun."""
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="lease-renewals", daemon=True)
            thread.start()
            self._thread = thread

    def end(self) -> None:
        """Stop looking, and wait for the thread."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def keep(self, ticket: Ticket, now_ms: int) -> Hand:
        """Look after the lease of a job from its claim on."""
        hand = Hand(ticket, is_clipped=self._is_clipped(ticket, now_ms))
        self._hands[hand] = None
        return hand

    def drop(self, hand: Hand) -> None:
        """Leave a job alone."""
        del self._hands[hand]

    def renew_due(self, connect: Callable[[], sqlite3.Connection]) -> None:
        """Renew every lease of which less than half is left.

        Args:
            connect: called for the connection once there is a lease to renew.
        """
        for hand in list(self._hands):
            if self._is_due(hand, self._now()):
                con = connect()
                self._turns.take(partial(self._renew, con, hand))

    def _work(self) -> None:
        rhythm_s = max(self._options.lease_ms / 1000 / _LOOKS, _FINEST_S)
        opened: list[sqlite3.Connection] = []

        def connect() -> sqlite3.Connection:
            # Most runs never need it.
            if not opened:
                opened.append(self._turns.connect())
            return opened[0]

        try:
            while not self._ended.wait(rhythm_s):
                self._look(connect)
        except BaseException as error:  # noqa: BLE001  (it is raised by the thread that runs)
            self._mail.put(error)
        finally:
            for con in opened:
                con.close()

    def _look(self, connect: Callable[[], sqlite3.Connection]) -> None:
        try:
            self.renew_due(connect)
        except sqlite3.OperationalError as error:
            if not (is_locked(error) or is_full(error)):
                raise
            if not self._is_in_trouble:
                self._mail.put(Trouble(error))
            self._is_in_trouble = True
        else:
            self._is_in_trouble = False

    def _is_due(self, hand: Hand, now_ms: int) -> bool:
        left_ms = hand.ticket["lease_until"] - now_ms
        return hand.wants_renewal() and left_ms < self._options.lease_ms / 2

    def _renew(self, con: sqlite3.Connection, hand: Hand) -> None:
        if hand not in self._hands:
            return  # recorded while this waited for its turn
        now_ms = self._now()
        ticket = jobs.renew(
            con, hand.ticket, now_ms, self._options.lease_ms, limits=self._options.limits
        )
        if ticket is None:
            hand.is_lost = True
        else:
            hand.ticket = ticket
            hand.is_clipped = self._is_clipped(ticket, now_ms)

    def _is_clipped(self, ticket: Ticket, now_ms: int) -> bool:
        """Return whether a lease from now ends before it was asked to, at the deadline."""
        return ticket["lease_until"] < now_ms + self._options.lease_ms

    def _now(self) -> int:
        return checks.now(self._options.clock(), self._options.limits, "clock()")
