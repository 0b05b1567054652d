"""What the tests of the batch verbs share: equal queues, and what a call runs."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from lease.db.statements import Statement
from lease.jobs import create_queue
from tests.support import shadow
from tests.support.histories import twins
from tests.support.queue import faults_beside

#: Which past the two queues have.
seeds = st.integers(0, 10**9)

#: One past is a hundred small steps, which Hypothesis takes for slow.
many_pasts = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@contextmanager
def equal_queues(seed: int) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection, Any]]:
    """Give two equal queues and the history behind them; demand that they are equal again."""
    one, other, history = twins(seed)
    with closing(one), closing(other):
        yield one, other, history
        assert shadow.rows(one) == shadow.rows(other)
        assert faults_beside(one) == faults_beside(other) == []


@cache
def _empty_queue() -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as con:
        create_queue(con)
        return con.serialize()


@contextmanager
def untouched(put: Callable[[sqlite3.Connection], object]) -> Iterator[sqlite3.Connection]:
    """Give a queue in memory, filled by `put`; demand that nothing is written to it."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as con:
        con.deserialize(_empty_queue())
        put(con)
        before = con.serialize()
        yield con
        assert not con.in_transaction
        assert con.serialize() == before


def sequences(good: list[Any]) -> list[Any]:
    """Return what an exact list or tuple of at most 10000 is not."""
    return [
        pytest.param(None, id="none"),
        pytest.param("events", id="str"),
        pytest.param({}, id="dict"),
        pytest.param({1}, id="set"),
        pytest.param(iter(good), id="iterator"),
        pytest.param(_List(good), id="list-subclass"),
        pytest.param(good * 10_001, id="too-many"),
    ]


class _List(list[Any]):
    """A list subclass, which may answer differently each time."""


def statements(con: sqlite3.Connection, act: Callable[[], object]) -> list[str]:
    """Return the names of the statements that an act runs, and the words of its transaction."""
    seen: list[str] = []

    def trace(sql: str) -> None:
        if sql in {"BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"}:
            seen.append(sql)

    def cursor(self: Statement, *arguments: Any) -> sqlite3.Cursor:
        seen.append(self.name)
        return run(self, *arguments)

    run = Statement._cursor
    con.set_trace_callback(trace)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Statement, "_cursor", cursor)
        act()
    con.set_trace_callback(None)
    return seen
