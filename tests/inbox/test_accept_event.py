"""accept_event: an outbox's event, one effect for each id and content."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lease import WIDE, Conflict
from lease.inbox import accept, accept_event
from tests.support.queue import ERRORS, Hook, failing_at, unchanged
from tests.support.refused import IDENTIFIERS, instants, mappings, within

EVENT: Any = {"id": "event-1", "event_type": "order.placed", "payload": {"b": [1], "a": "\u00e9"}}
NOW = 10_000


def rows(con: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return every accepted event."""
    return con.execute(
        "SELECT id, event_type, payload_json, requests, first_ms, last_ms FROM inbox_events"
    ).fetchall()


def test_accept_event_writes_a_row(inbox: sqlite3.Connection) -> None:
    """A new event is one row, with its payload as canonical JSON."""
    assert accept_event(inbox, EVENT, NOW) is True

    assert rows(inbox) == [
        ("event-1", "order.placed", '{"a":"\u00e9","b":[1]}', 1, NOW, NOW),
    ]
    assert not inbox.in_transaction
    assert EVENT["payload"] == {"b": [1], "a": "\u00e9"}


def test_accept_event_counts_a_repeat(inbox: sqlite3.Connection) -> None:
    """The same content under an id is one row, in whatever order of keys, and each is counted."""
    accept_event(inbox, EVENT, NOW)
    again = EVENT | {"payload": {"a": "\u00e9", "b": [1]}}

    assert accept_event(inbox, again, NOW + 5) is False
    assert accept_event(inbox, EVENT, NOW - 5) is False
    assert [row[3:] for row in rows(inbox)] == [(3, NOW, NOW + 5)]


@pytest.mark.parametrize(
    "change", [{"event_type": "order.paid"}, {"payload": {"b": [1]}}, {"payload": None}]
)
def test_accept_event_refuses_other_content(
    inbox: sqlite3.Connection, path: Path, change: dict[str, Any]
) -> None:
    """The same id with another type or payload is a conflict, and tells nothing of the first."""
    accept_event(inbox, EVENT, NOW)

    with unchanged(inbox, path), pytest.raises(Conflict, match="with other content") as raised:
        accept_event(inbox, EVENT | change, NOW)
    assert "placed" not in str(raised.value)


def test_accept_event_is_apart_from_accept(inbox: sqlite3.Connection) -> None:
    """An id of a quantity says nothing about an id of an event."""
    accept(inbox, {"id": "event-1", "qty": 1}, NOW)

    assert accept_event(inbox, EVENT, NOW) is True


def test_accept_event_makes_the_effect(inbox: sqlite3.Connection) -> None:
    """The effect gets its own copy, inside the transaction, once."""
    told: list[Any] = []

    def effect(con: sqlite3.Connection, event: Any) -> None:
        told.append((con is inbox, con.in_transaction, dict(event)))
        event["payload"].clear()

    assert accept_event(inbox, EVENT, NOW, effect) is True
    assert accept_event(inbox, EVENT, NOW, effect) is False
    assert told == [(True, True, {**EVENT, "payload": {}})]
    assert rows(inbox)[0][2] == '{"a":"\u00e9","b":[1]}'
    assert EVENT["payload"] == {"b": [1], "a": "\u00e9"}


@pytest.mark.parametrize("kind", ERRORS)
def test_accept_event_is_undone_by_its_effect(
    inbox: sqlite3.Connection, path: Path, kind: type[BaseException]
) -> None:
    """What the effect raises comes out as it is, and leaves neither row nor effect."""
    error = kind("no")

    def effect(_con: sqlite3.Connection, _event: Any) -> None:
        raise error

    with unchanged(inbox, path), pytest.raises(kind) as raised:
        accept_event(inbox, EVENT, NOW, effect)
    assert raised.value is error


def test_accept_event_refuses_an_effect_that_ends_it(inbox: sqlite3.Connection) -> None:
    """An effect that commits is told that the two may have parted."""
    with pytest.raises(sqlite3.ProgrammingError, match="event event-1 ended the transaction"):
        accept_event(inbox, EVENT, NOW, lambda con, _event: con.execute("COMMIT"))


def test_accept_event_calls_hooks(inbox: sqlite3.Connection) -> None:
    """Three boundaries for a new event, with an effect or without, none for a repeat."""
    hook = Hook()
    accept_event(inbox, EVENT, NOW, lambda _con, _event: hook("effect"), hook)
    assert hook == ["after-inbox", "effect", "after-effect", "after-commit"]
    hook.clear()
    accept_event(inbox, EVENT, NOW, None, hook)
    assert hook == []
    accept_event(inbox, EVENT | {"id": "event-2"}, NOW, None, hook)
    assert hook == ["after-inbox", "after-effect", "after-commit"]


@pytest.mark.parametrize(
    ("boundary", "left"), [("after-inbox", 0), ("after-effect", 0), ("after-commit", 1)]
)
def test_accept_event_is_atomic(inbox: sqlite3.Connection, boundary: str, left: int) -> None:
    """A failure before the commit leaves nothing."""
    with pytest.raises(KeyboardInterrupt):
        accept_event(inbox, EVENT, NOW, None, failing_at(boundary, KeyboardInterrupt()))
    assert len(rows(inbox)) == left
    assert not inbox.in_transaction


@pytest.mark.parametrize(
    "event",
    [
        *mappings(EVENT),
        *within(EVENT, "id", IDENTIFIERS),
        *within(EVENT, "event_type", [pytest.param("", id="empty"), pytest.param(1, id="int")]),
        *within(EVENT, "payload", [pytest.param((1,), id="tuple"), pytest.param({1: 1}, id="key")]),
    ],
)
def test_accept_event_refuses(inbox: sqlite3.Connection, path: Path, event: Any) -> None:
    """What is no event is refused before the inbox is looked at."""
    with unchanged(inbox, path), pytest.raises(ValueError, match="must"):
        accept_event(inbox, event, NOW)


@pytest.mark.parametrize("now_ms", instants(WIDE))
def test_accept_event_refuses_now(inbox: sqlite3.Connection, path: Path, now_ms: Any) -> None:
    """An instant is an exact int within the limits."""
    with unchanged(inbox, path), pytest.raises(ValueError, match="now_ms must be an int"):
        accept_event(inbox, EVENT, now_ms)
