"""What every verb owes to a connection that it only borrows."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lease import Conflict, Permanent, Retryable
from lease.worker import claim, enqueue, finish, redrive, run_once
from tests.support.queue import (
    NOW,
    Hook,
    all_jobs,
    audits,
    put_dead,
    put_leased,
    put_pending,
    ticket_of,
    unchanged,
    writing,
)

EVENT = {"id": "job-1", "qty": 7}


Row = dict[str, Any] | None
Put = Callable[[sqlite3.Connection], Row]
Hooked = Callable[[sqlite3.Connection, Any, Any], Any]


class Case(NamedTuple):
    """One path through one verb: the row it starts from, the call, and what comes of it."""

    put: Put
    call: Callable[[sqlite3.Connection, Any], Any]
    result: Any


def nothing(con: sqlite3.Connection) -> None:
    """Put no row."""


def raising(kind: type[Exception]) -> Callable[[object], bool]:
    """Return a sender that fails."""

    def send(event: object) -> bool:
        raise kind

    return send


CLAIMED = {
    "id": "job-1",
    "qty": 7,
    "owner": "w",
    "token": 1,
    "attempt": 1,
    "lease_until": NOW + 1000,
}
STALE = {**CLAIMED, "token": 9}

REFUSED = {
    "enqueue-refused": Case(nothing, lambda con, _: enqueue(con, EVENT, -1, 1000), ValueError),
    "claim-refused": Case(put_pending, lambda con, _: claim(con, "", NOW), ValueError),
    "finish-refused": Case(put_leased, lambda con, _: finish(con, {}, "ok", NOW), ValueError),
    "redrive-refused": Case(put_dead, lambda con, _: redrive(con, "", NOW, 1, "n"), ValueError),
    "run-refused": Case(
        put_pending, lambda con, _: run_once(con, "w", lambda: NOW, bool, 2), ValueError
    ),
}
DECIDED = {
    "enqueue-new": Case(nothing, lambda con, _: enqueue(con, EVENT, NOW, 1000), True),
    "enqueue-again": Case(put_pending, lambda con, _: enqueue(con, EVENT, NOW, 1000), False),
    "enqueue-conflict": Case(
        put_pending, lambda con, _: enqueue(con, EVENT | {"qty": 8}, NOW, 1000), Conflict
    ),
    "claim": Case(put_pending, lambda con, _: claim(con, "w", NOW), CLAIMED),
    "claim-none": Case(put_leased, lambda con, _: claim(con, "w", NOW), None),
    "finish-ok": Case(put_leased, lambda con, row: finish(con, ticket_of(row), "ok", NOW), "done"),
    "finish-retry": Case(
        put_leased, lambda con, row: finish(con, ticket_of(row), "retry", NOW), "pending"
    ),
    "finish-stale": Case(put_leased, lambda con, _: finish(con, STALE, "ok", NOW), False),
    "redrive": Case(put_dead, lambda con, _: redrive(con, "job-1", NOW, 1000, "n"), True),
    "redrive-missing": Case(nothing, lambda con, _: redrive(con, "x", NOW, 1, "n"), ValueError),
    "redrive-alive": Case(
        put_pending, lambda con, _: redrive(con, "job-1", NOW, 1, "n"), ValueError
    ),
    "run-done": Case(
        put_pending,
        lambda con, _: run_once(con, "w", lambda: NOW, lambda event: True, 1),
        {"id": "job-1", "token": 1, "status": "done"},
    ),
    "run-retry": Case(
        put_pending,
        lambda con, _: run_once(con, "w", lambda: NOW, raising(Retryable), 1),
        {"id": "job-1", "token": 1, "status": "pending"},
    ),
    "run-permanent": Case(
        put_pending,
        lambda con, _: run_once(con, "w", lambda: NOW, raising(Permanent), 1),
        {"id": "job-1", "token": 1, "status": "dead"},
    ),
    "run-error": Case(
        put_pending, lambda con, _: run_once(con, "w", lambda: NOW, raising(OSError), 1), OSError
    ),
    "run-none": Case(nothing, lambda con, _: run_once(con, "w", lambda: NOW, bool, 1), None),
}
CASES = REFUSED | DECIDED

each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def check(con: sqlite3.Connection, case: Case, row: Row) -> None:
    """Demand the case's result of a connection."""
    if isinstance(case.result, type):
        with pytest.raises(case.result):
            case.call(con, row)
    else:
        result = case.call(con, row)
        assert result == case.result
        assert type(result) is type(case.result)


def refuse_rows(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> Any:
    """Stand for a row factory that fits the application's own queries alone."""
    raise TypeError("not a row of mine")


@each_case
@pytest.mark.parametrize("row_factory", [sqlite3.Row, dict, refuse_rows])
def test_verb_minds_no_row_factory(con: sqlite3.Connection, case: Case, row_factory: Any) -> None:
    """The application's row shape is neither used nor changed."""
    row = case.put(con)
    con.row_factory = row_factory
    check(con, case, row)

    assert con.row_factory is row_factory


@each_case
@pytest.mark.parametrize("text_factory", [bytes, lambda text: text.decode().upper(), refuse_rows])
def test_verb_minds_no_text_factory(con: sqlite3.Connection, case: Case, text_factory: Any) -> None:
    """Nor is what the application wants texts to be, however the verb ends."""
    row = case.put(con)
    con.text_factory = text_factory
    check(con, case, row)

    assert con.text_factory is text_factory


@each_case
@pytest.mark.parametrize("level", ["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"])
def test_verb_minds_no_isolation_level(
    con: sqlite3.Connection, queue_path: Path, case: Case, level: str
) -> None:
    """A connection that begins transactions by itself works as well, and keeps doing so."""
    row = case.put(con)
    with closing(sqlite3.connect(queue_path, isolation_level=level)) as other:
        check(other, case, row)

        assert other.isolation_level == level
        assert not other.in_transaction


@each_case
def test_verb_leaves_the_connection_open_and_unlocked(
    con: sqlite3.Connection, queue_path: Path, case: Case
) -> None:
    """Afterwards nothing is open, neither a transaction nor a statement that holds a lock."""
    row = case.put(con)
    check(con, case, row)

    assert not con.in_transaction
    con.execute("SELECT 1")
    with writing(queue_path) as other:
        other.execute("COMMIT")
        other.execute("BEGIN EXCLUSIVE")


@pytest.mark.parametrize("case", DECIDED.values(), ids=DECIDED)
def test_verb_refuses_a_closed_connection(con: sqlite3.Connection, case: Case) -> None:
    """A closed connection is SQLite's own error."""
    row = case.put(con)
    con.close()

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        case.call(con, row)


def traced(con: sqlite3.Connection, case: Case) -> list[str]:
    """Return the statements that a case runs."""
    row = case.put(con)
    statements: list[str] = []
    con.set_trace_callback(statements.append)
    check(con, case, row)
    con.set_trace_callback(None)
    return statements


@pytest.mark.parametrize("case", DECIDED.values(), ids=DECIDED)
def test_verb_decides_under_the_write_lock(con: sqlite3.Connection, case: Case) -> None:
    """Nothing is read before BEGIN IMMEDIATE, and nothing after the transaction's end."""
    first, *_, last = traced(con, case)

    assert first == "BEGIN IMMEDIATE"
    assert last in ("COMMIT", "ROLLBACK")


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_verb_checks_its_input_first(con: sqlite3.Connection, case: Case) -> None:
    """Unusable input runs no statement at all."""
    assert traced(con, case) == []


class Unruly(sqlite3.Connection):
    """A connection whose ROLLBACK or COMMIT fails as it was told."""

    failures: dict[str, BaseException]

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        if sql in self.failures:
            raise self.failures[sql]
        return super().execute(sql, *args)


@pytest.fixture
def unruly(con: sqlite3.Connection, queue_path: Path) -> Iterator[Unruly]:
    """Another connection to the queue, which will fail as told."""
    with closing(sqlite3.connect(queue_path, isolation_level=None, factory=Unruly)) as other:
        other.failures = {}
        yield other


HOOKED = {
    "claim": (put_pending, lambda con, _row, hook: claim(con, "w", NOW, 1000, hook)),
    "finish": (
        put_leased,
        lambda con, row, hook: finish(con, ticket_of(row), "ok", NOW, 0, hook),
    ),
    "redrive": (
        put_dead,
        lambda con, _row, hook: redrive(con, "job-1", NOW, 1000, "n", hook),
    ),
}

each_hooked = pytest.mark.parametrize(("put", "call"), HOOKED.values(), ids=HOOKED)


@each_hooked
@pytest.mark.parametrize("failure", [sqlite3.OperationalError, RuntimeError])
def test_verb_whose_rollback_fails_as_well(
    unruly: Unruly, put: Put, call: Hooked, failure: type[Exception]
) -> None:
    """The first error comes out, with a note of the second."""
    row = put(unruly)
    error = KeyboardInterrupt("first")
    unruly.failures = {"ROLLBACK": failure("second")}

    def hook(boundary: str) -> None:
        raise error

    with pytest.raises(KeyboardInterrupt) as caught:
        call(unruly, row, hook)
    assert caught.value is error
    assert error.__notes__ == ["ROLLBACK failed as well: second"]


@each_hooked
def test_verb_whose_hook_closes_the_connection(
    con: sqlite3.Connection, put: Put, call: Hooked
) -> None:
    """A hook that closes the connection and fails is heard, not SQLite's complaint about it."""
    row = put(con)
    error = RuntimeError("first")

    def hook(boundary: str) -> None:
        con.close()
        raise error

    with pytest.raises(RuntimeError) as caught:
        call(con, row, hook)
    assert caught.value is error


@each_hooked
def test_verb_whose_hook_rolls_back(
    con: sqlite3.Connection, queue_path: Path, put: Put, call: Hooked
) -> None:
    """A hook that ends the transaction and fails leaves nothing for the verb to undo."""
    row = put(con)
    error = RuntimeError("first")

    def hook(boundary: str) -> None:
        con.execute("ROLLBACK")
        raise error

    with unchanged(con, queue_path), pytest.raises(RuntimeError) as caught:
        call(con, row, hook)
    assert caught.value is error
    assert not hasattr(error, "__notes__")


@dataclass(frozen=True)
class FrozenError(Exception):
    """An error that cannot be written to."""

    why: str


@each_hooked
def test_verb_whose_hook_raises_a_frozen_error(
    con: sqlite3.Connection, queue_path: Path, put: Put, call: Hooked
) -> None:
    """An error that allows no attribute to be set comes out as it is."""
    row = put(con)
    error = FrozenError("told to")

    def hook(boundary: str) -> None:
        raise error

    with unchanged(con, queue_path), pytest.raises(FrozenError) as caught:
        call(con, row, hook)
    assert caught.value is error


@each_hooked
def test_verb_whose_commit_is_interrupted(
    unruly: Unruly, con: sqlite3.Connection, queue_path: Path, put: Put, call: Hooked
) -> None:
    """Whatever COMMIT raises comes out, and what was not committed is rolled back."""
    row = put(unruly)
    error, hook = KeyboardInterrupt("at the commit"), Hook()
    unruly.failures = {"COMMIT": error}

    with unchanged(unruly, queue_path), pytest.raises(KeyboardInterrupt) as caught:
        call(unruly, row, hook)
    assert caught.value is error
    assert "after-commit" not in hook
    with writing(queue_path):
        pass


@each_hooked
def test_verb_calls_no_hook_unless_told(con: sqlite3.Connection, put: Put, call: Hooked) -> None:
    """None stands for no hook."""
    row = put(con)

    assert call(con, row, None)


@pytest.mark.parametrize("fault", [7, "hook"])
@each_hooked
def test_verb_with_a_hook_that_cannot_be_called(
    con: sqlite3.Connection, queue_path: Path, put: Put, call: Hooked, fault: Any
) -> None:
    """What is not callable fails before the commit and changes nothing."""
    row = put(con)
    before = all_jobs(con), audits(con)

    with unchanged(con, queue_path), pytest.raises(TypeError):
        call(con, row, fault)
    assert before == (all_jobs(con), audits(con))
