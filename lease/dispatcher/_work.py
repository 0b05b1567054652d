"""The jobs in hand: claimed, sent, answered, recorded, told; each by the thread that runs."""

import sqlite3
from collections import Counter
from contextlib import suppress
from queue import Empty
from time import monotonic
from typing import Literal, NamedTuple

from lease import checks, jobs
from lease.breaker import Breaker
from lease.dispatcher._hand import Hand
from lease.dispatcher._mail import Answer, Mail, Message, Trouble
from lease.dispatcher._model import Options, Result
from lease.dispatcher._renewals import Renewals
from lease.dispatcher._senders import senders
from lease.dispatcher._turns import Turns
from lease.model import Outcome

# Waiting for company must not cost a result its lease.
_FLUSHES = 8

# What a job became, or False for a stale ticket.
_Status = str | Literal[False]


class _Record(NamedTuple):
    """What a send came to and has to be recorded."""

    hand: Hand
    outcome: Outcome
    delay_ms: int
    error: Exception | None


class Work:
    """What is in hand, from the claim to the result that is told.

    Args:
        options: of the dispatcher.
        concurrency: how many jobs are sent at a time.
        mail: read here alone.
    """

    def __init__(self, options: Options, concurrency: int, mail: Mail) -> None:
        self._options = options
        self._flush_s = min(options.flush_ms, options.lease_ms // _FLUSHES) / 1000
        self._mail = mail
        self._turns = Turns(options.path, lambda error: mail.put(Trouble(error)))
        self._renewals = Renewals(options, self._turns, mail)
        self._senders = senders(concurrency, options.send, mail, self.now)
        self._is_hushed = False
        #: Whether it is of any use to send more.
        self.breaker = Breaker(options.give_up_after)
        #: How many jobs were handed to the senders and are not answered.
        self.out = 0
        #: What was answered and has to be recorded.
        self.records: list[_Record] = []
        #: How many jobs were told to be in which state.
        self.tally: Counter[str] = Counter()

    def close(self) -> None:
        """End the threads, those whose send was not waited for when it ends."""
        self._senders.end(is_idle=self.out <= 0)
        self._renewals.end()
        self._turns.close()

    def hush(self) -> None:
        """Tell nobody anything from now on."""
        self._is_hushed = True

    def now(self) -> int:
        """Return the present."""
        return checks.now(self._options.clock(), self._options.limits, "clock()")

    def tell_trouble(self, error: Exception) -> None:
        """Tell of something that has to be waited for, or done without."""
        if not self._is_hushed:
            self._options.on_trouble(error)

    def gather(self, timeout_s: float | None) -> None:
        """Take in what has come, or wait for it; and with an answer in hand a bit for others.

        Args:
            timeout_s: how long to wait, in seconds; None for as long as it takes.
        """
        self._take_in(timeout_s)
        flush_until = monotonic() + self._flush_s
        while self.records and self.out > 0 and (left_s := flush_until - monotonic()) > 0:
            self._take_in(left_s)

    def connect(self) -> sqlite3.Connection:
        """Open the queue."""
        return self._turns.connect()

    def look(self, con: sqlite3.Connection, max_jobs: int) -> int | None:
        """Claim and hand out if a job is due; otherwise only read.

        Args:
            con: a connection with no transaction open.
            max_jobs: how many to claim at most, from 1.

        Returns:
            In how many milliseconds the next job is due, 0 if there may be more to do at once,
            or None if no job is open.
        """
        due_in_ms, hands = self._turns.take(lambda: self._look(con, max_jobs))
        self._hand_out(hands)
        return due_in_ms

    def commit(self, con: sqlite3.Connection, max_jobs: int) -> None:
        """Record what there is to record, claim, hand out and tell.

        Args:
            con: a connection with no transaction open.
            max_jobs: how many to claim at most, or 0 to claim none.
        """
        statuses, hands = self._turns.take(lambda: self._write(con, max_jobs))
        records, self.records = self.records, []
        self._hand_out(hands)
        self._settle(list(zip(records, statuses, strict=True)))

    def expire(self) -> None:
        """Give up the records whose lease has ended: they would be refused."""
        now_ms = self.now()
        records, self.records = self.records, []
        late: list[tuple[_Record, _Status]] = []
        for record in records:
            if record.hand.ticket["lease_until"] > now_ms:
                self.records.append(record)
            else:
                late.append((record, False))
        self._settle(late)

    def _look(self, con: sqlite3.Connection, max_jobs: int) -> tuple[int | None, list[Hand]]:
        due_ms = jobs.next_due(con)
        if due_ms is None:
            return None, []
        due_in_ms = max(0, due_ms - self.now())
        return due_in_ms, [] if due_in_ms else self._write(con, max_jobs)[1]

    def _write(self, con: sqlite3.Connection, max_jobs: int) -> tuple[list[_Status], list[Hand]]:
        options = self._options
        # The tickets are those of this turn: a renewal may have come before it.
        results = [(each.hand.ticket, each.outcome, each.delay_ms) for each in self.records]
        now_ms = self.now()
        if not max_jobs:
            return jobs.finish_many(con, results, now_ms, limits=options.limits), []
        # Before the claim: a thread that cannot be started must not cost an attempt.
        self._renewals.start()
        self._senders.start()
        statuses, tickets = jobs.finish_and_claim(
            con, results, options.owner, now_ms, max_jobs, options.lease_ms, limits=options.limits
        )
        return statuses, [self._renewals.keep(ticket, now_ms) for ticket in tickets]

    def _hand_out(self, hands: list[Hand]) -> None:
        for hand in hands:
            try:
                checks.ticket(hand.ticket, self._options.limits)
            except ValueError as error:
                # Put there by somebody's own SQL: no result of it could be recorded, nor could
                # those of the other jobs together with it. Its attempts run out unsent.
                hand.is_let_go = True
                self._mail.put(Answer(hand, None, error))
            else:
                self._senders.hand(hand)
            self.out += 1

    def _settle(self, settled: list[tuple[_Record, _Status]]) -> None:
        # All of them first: what is told may take its time, or fail.
        for record, _status in settled:
            self._renewals.drop(record.hand)
        for record, status in settled:
            self._tell(record.hand, status or "stale", record.delay_ms, record.error)

    def _take_in(self, timeout_s: float | None) -> None:
        self._senders.lend()
        with suppress(Empty):
            self._accept(self._mail.get(timeout=timeout_s))
            while True:
                self._accept(self._mail.get_nowait())

    def _accept(self, message: Message) -> None:
        match message:
            case Answer():
                self.out -= 1
                self._judge(message)
            case Trouble(error):
                self.tell_trouble(error)
            case BaseException():
                raise message

    def _judge(self, answer: Answer) -> None:
        """Put an outcome down to be recorded; tell at once where there is none."""
        hand, outcome, error = answer
        if error is not None and not isinstance(error, Exception):
            self._renewals.drop(hand)
            raise error
        if outcome is None:
            self._renewals.drop(hand)
            self._tell(hand, "stale" if hand.is_lost else "leased", 0, error)
            return
        self.breaker.hear(outcome)
        options = self._options
        delay_ms = 0
        if outcome == "retry":
            delay_ms = jobs.retry_delay(
                hand.ticket["attempt"],
                options.base_ms,
                options.cap_ms,
                options.jitter(),
                limits=options.limits,
            )
        self.records.append(_Record(hand, outcome, delay_ms, error))

    def _tell(self, hand: Hand, status: str, delay_ms: int, error: Exception | None) -> None:
        self.tally[status] += 1
        if not self._is_hushed:
            ticket = hand.ticket
            self._options.on_result(
                Result(ticket["id"], ticket["token"], ticket["attempt"], status, delay_ms, error)
            )
