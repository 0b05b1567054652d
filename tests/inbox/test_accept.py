"""accept: one effect an event, in one transaction with its row, whatever happens in between."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease import CONTRACT, WIDE, Conflict, jobs
from lease.inbox import accept, open_inbox
from tests.support.http import rows
from tests.support.queue import ERRORS, Hook, failing_at, reading, unchanged, without_waiting
from tests.support.refused import IDENTIFIERS, instants, integers, mappings, table, within

EVENT: Any = {"id": "event-1", "qty": 7}
NOW = 10_000


def times(con: sqlite3.Connection) -> list[tuple[int, int]]:
    """Return when each event came first and last."""
    return con.execute("SELECT first_ms, last_ms FROM inbox").fetchall()


def test_accept_makes_the_effect(inbox: sqlite3.Connection, path: Path) -> None:
    """A new event is one row and one effect, committed, under the receiver's clock."""
    assert accept(inbox, EVENT, NOW) is True

    assert rows(path) == ([("event-1", 7, 1)], [("event-1", 7)])
    assert times(inbox) == [(NOW, NOW)]
    assert inbox.execute("SELECT at_ms FROM effects").fetchall() == [(NOW,)]
    assert not inbox.in_transaction
    assert EVENT == {"id": "event-1", "qty": 7}


def test_accept_counts_a_repeat(inbox: sqlite3.Connection, path: Path) -> None:
    """The same id and quantity is one effect, and each delivery is counted."""
    accept(inbox, EVENT, NOW)

    assert accept(inbox, dict(EVENT), NOW + 5) is False
    assert accept(inbox, EVENT, NOW + 9) is False
    assert rows(path) == ([("event-1", 7, 3)], [("event-1", 7)])
    assert times(inbox) == [(NOW, NOW + 9)]
    assert not inbox.in_transaction


def test_accept_keeps_the_latest_time_of_a_clock_set_back(inbox: sqlite3.Connection) -> None:
    """A repeat under an earlier time is counted and moves no time."""
    accept(inbox, EVENT, NOW)

    assert accept(inbox, EVENT, NOW - 1) is False
    assert times(inbox) == [(NOW, NOW)]


@pytest.mark.parametrize("qty", [6, 8])
def test_accept_refuses_another_quantity(inbox: sqlite3.Connection, path: Path, qty: int) -> None:
    """The same id with another quantity changes nothing and is not told the first one."""
    accept(inbox, EVENT, NOW)
    hook = Hook()

    with unchanged(inbox, path), pytest.raises(Conflict, match="use another id") as caught:
        accept(inbox, {"id": "event-1", "qty": qty}, NOW + 5, fault=hook)
    assert "7" not in str(caught.value)
    assert hook == []


def test_accept_tells_events_apart(inbox: sqlite3.Connection, path: Path) -> None:
    """Ids differ by case and by every character."""
    for event_id in ("a", "A", "a-", "a_"):
        assert accept(inbox, {"id": event_id, "qty": 1}, NOW) is True

    assert len(rows(path)[1]) == 4


CASES = table(
    event=[
        *mappings(EVENT),
        *within(EVENT, "id", IDENTIFIERS),
        *within(EVENT, "qty", integers(1, 1000)),
    ],
    now_ms=instants(WIDE),
)


@pytest.mark.parametrize(("argument", "value"), CASES)
def test_accept_refuses(
    inbox: sqlite3.Connection, path: Path, argument: str, value: object
) -> None:
    """Input of another type or range is a ValueError before anything changes."""
    given: dict[str, Any] = {"event": EVENT, "now_ms": NOW} | {argument: value}
    hook = Hook()

    with unchanged(inbox, path), pytest.raises(ValueError, match="must be"):
        accept(inbox, **given, fault=hook)
    assert hook == []


@pytest.mark.parametrize("limits", [CONTRACT, WIDE])
def test_accept_keeps_the_limits(inbox: sqlite3.Connection, limits: Any) -> None:
    """Zero and the latest instant of the limits are in range, and the next is not."""
    assert accept(inbox, {"id": "a", "qty": 1}, 0, limits=limits) is True
    assert accept(inbox, {"id": "b", "qty": 1000}, limits.max_now_ms, limits=limits) is True
    with pytest.raises(ValueError, match="now_ms"):
        accept(inbox, {"id": "c", "qty": 1}, limits.max_now_ms + 1, limits=limits)


def test_accept_calls_the_hooks_in_order(inbox: sqlite3.Connection, path: Path) -> None:
    """The hooks stand at the commit boundaries; only the last one sees the change committed."""
    seen: list[tuple[str, int, int]] = []

    def hook(boundary: str) -> None:
        inboxes, effects = rows(path) if boundary == "after-commit" else ([], [])
        own = inbox.execute("SELECT count(*) FROM effects").fetchone()[0]
        seen.append((boundary, own, len(inboxes) + len(effects)))

    accept(inbox, EVENT, NOW, fault=hook)

    assert seen == [("after-inbox", 0, 0), ("after-effect", 1, 0), ("after-commit", 1, 2)]


def test_accept_calls_no_hook_for_a_repeat(inbox: sqlite3.Connection) -> None:
    """A delivery that makes no effect passes no boundary."""
    hook = Hook()
    accept(inbox, EVENT, NOW, fault=hook)
    accept(inbox, EVENT, NOW, fault=hook)

    assert hook == ["after-inbox", "after-effect", "after-commit"]


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("boundary", ["after-inbox", "after-effect"])
def test_accept_leaves_nothing_if_a_hook_raises_before_commit(
    inbox: sqlite3.Connection, path: Path, boundary: str, kind: type[BaseException]
) -> None:
    """Neither row nor effect is left, and the very error comes out; a later delivery is new."""
    error = kind("hook")

    with unchanged(inbox, path), pytest.raises(kind) as caught:
        accept(inbox, EVENT, NOW, fault=failing_at(boundary, error))
    assert caught.value is error
    assert accept(inbox, EVENT, NOW) is True


@pytest.mark.parametrize("kind", ERRORS)
def test_accept_keeps_both_if_a_hook_raises_after_commit(
    inbox: sqlite3.Connection, path: Path, kind: type[BaseException]
) -> None:
    """What was committed stays, and the very error comes out."""
    error = kind("hook")

    with pytest.raises(kind) as caught:
        accept(inbox, EVENT, NOW, fault=failing_at("after-commit", error))
    assert caught.value is error
    assert rows(path) == ([("event-1", 7, 1)], [("event-1", 7)])
    assert not inbox.in_transaction


def test_accept_runs_the_applications_effect_inside(inbox: sqlite3.Connection, path: Path) -> None:
    """The effect gets the connection, in the transaction, and replaces the built-in one."""
    inbox.execute("CREATE TABLE stock (id TEXT, qty INTEGER)")
    seen: list[bool] = []

    def effect(con: sqlite3.Connection, event: Any) -> None:
        seen.append(con.in_transaction)
        con.execute("INSERT INTO stock VALUES (:id, :qty)", event)
        event["id"] = "changed"

    assert accept(inbox, EVENT, NOW, effect) is True
    assert accept(inbox, EVENT, NOW, effect) is False
    assert seen == [True]
    assert EVENT == {"id": "event-1", "qty": 7}
    assert rows(path) == ([("event-1", 7, 2)], [])
    assert inbox.execute("SELECT id, qty FROM stock").fetchall() == [("event-1", 7)]


@pytest.mark.parametrize("kind", ERRORS)
def test_accept_leaves_nothing_of_an_effect_that_raises(
    inbox: sqlite3.Connection, path: Path, kind: type[BaseException]
) -> None:
    """What the effect wrote goes with the inbox row, and the very error comes out."""
    error = kind("effect")

    def effect(con: sqlite3.Connection, _event: Any) -> None:
        con.execute("INSERT INTO effects VALUES (1, 'event-1', 1, 1)")
        raise error

    with unchanged(inbox, path), pytest.raises(kind) as caught:
        accept(inbox, EVENT, NOW, effect)
    assert caught.value is error
    assert accept(inbox, EVENT, NOW) is True


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_accept_says_so_if_the_effect_ends_the_transaction(
    inbox: sqlite3.Connection, end: str
) -> None:
    """An effect that commits or rolls back by itself is an error, before any hook or COMMIT."""
    hook = Hook()

    def effect(con: sqlite3.Connection, _event: Any) -> None:
        con.execute(end)

    with pytest.raises(sqlite3.ProgrammingError, match="event-1 ended the transaction"):
        accept(inbox, EVENT, NOW, effect, hook)
    assert hook == ["after-inbox"]
    assert not inbox.in_transaction


def test_accept_lets_no_verb_run_inside_the_effect(inbox: sqlite3.Connection, path: Path) -> None:
    """A verb that needs its own transaction is refused inside, and all is rolled back."""

    def effect(con: sqlite3.Connection, event: Any) -> None:
        accept(con, {"id": "other", "qty": 1}, NOW)

    with unchanged(inbox, path), pytest.raises(sqlite3.ProgrammingError, match="open transaction"):
        accept(inbox, EVENT, NOW, effect)


def test_accept_rolls_back_a_commit_that_fails(inbox: sqlite3.Connection, path: Path) -> None:
    """Somebody who reads makes COMMIT fail; nothing is left and a later delivery is new."""
    without_waiting(inbox)
    hook = Hook()

    with (
        reading(path),
        unchanged(inbox, path),
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        accept(inbox, EVENT, NOW, fault=hook)
    assert hook == ["after-inbox", "after-effect"]
    assert accept(inbox, EVENT, NOW) is True


def test_accept_leaves_an_open_transaction_alone(inbox: sqlite3.Connection) -> None:
    """Called inside the caller's own transaction, it refuses and leaves that open."""
    inbox.execute("BEGIN")

    with pytest.raises(sqlite3.ProgrammingError, match="open transaction"):
        accept(inbox, EVENT, NOW)
    assert inbox.in_transaction


def test_accept_works_on_a_connection_with_its_own_row_shape(inbox: sqlite3.Connection) -> None:
    """The connection is the application's, and so is its row factory."""
    inbox.row_factory = sqlite3.Row
    accept(inbox, EVENT, NOW)

    assert accept(inbox, EVENT, NOW) is False


def test_accept_makes_one_effect_of_simultaneous_deliveries(path: Path) -> None:
    """Threads that deliver one event at the same instant make one effect between them."""
    open_inbox(path).close()
    start = threading.Barrier(6)
    answers: list[bool] = []

    def deliver() -> None:
        with closing(open_inbox(path)) as con:
            con.execute("PRAGMA busy_timeout = 30000")
            start.wait()
            answers.append(accept(con, EVENT, NOW))

    threads = [threading.Thread(target=deliver) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == [False] * 5 + [True]
    assert rows(path) == ([("event-1", 7, 6)], [("event-1", 7)])


def test_accept_may_share_the_effect_with_a_queue(inbox: sqlite3.Connection, path: Path) -> None:
    """The queue's tables in the inbox's file are its own; an event is no job."""
    with closing(jobs.open_queue(path)) as con:
        accept(con, EVENT, NOW)

        assert jobs.enqueue(con, EVENT, NOW, 5) is True
