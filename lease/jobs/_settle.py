"""Settle claimed jobs by their tickets, inside a transaction that is already open."""

import sqlite3
from operator import itemgetter
from typing import Literal

from lease.checks import Result
from lease.db.arrays import array
from lease.db.statements import statement

FINISH_SETTLE = statement("finish_settle")
FINISH_MANY_FIND = statement("finish_many_find")
FINISH_MANY_SETTLE = statement("finish_many_settle")

# A ticket as finish_many_find takes it.
_in_order = itemgetter("id", "qty", "owner", "token", "attempt", "lease_until")

NewStatus = str | Literal[False]


def settle(con: sqlite3.Connection, results: list[Result], now_ms: int) -> list[NewStatus]:
    """Settle what each checked result says; return the new statuses in order, False if stale.

    One result is settled by a statement of its own, which costs less than those for a set.
    """
    if len(results) == 1:
        ((marker, outcome, delay_ms),) = results
        settled = FINISH_SETTLE.optional(
            con, **marker, outcome=outcome, now_ms=now_ms, delay_ms=delay_ms
        )
        return [settled[0] if settled else False]
    statuses: list[NewStatus] = [False] * len(results)
    if not results:
        return statuses
    tickets = array(_in_order(marker) for marker, _outcome, _delay_ms in results)
    positions: dict[int, int] = {}
    for position, seq in FINISH_MANY_FIND.many(con, tickets=tickets, now_ms=now_ms):
        # The same ticket again is stale, as it is after a single finish.
        positions.setdefault(seq, position)
    if not positions:
        return statuses
    current = array((seq, *results[position][1:]) for seq, position in positions.items())
    for seq, status in FINISH_MANY_SETTLE.many(con, results=current, now_ms=now_ms):
        statuses[positions[seq]] = status
    return statuses
