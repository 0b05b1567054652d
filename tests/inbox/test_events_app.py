"""`POST /events`: what an outbox delivers, over HTTP."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease.inbox.http import create_app
from tests.support.http import ask, post

EVENT: Any = {"id": "event-1", "event_type": "order.placed", "payload": {"n": 1}}


def requests(path: Path) -> list[tuple[str, int]]:
    """Return each event's id and how often it came."""
    with closing(sqlite3.connect(path)) as con:
        return con.execute("SELECT id, requests FROM inbox_events ORDER BY seq").fetchall()


def test_events_are_accepted_once(path: Path) -> None:
    """The first delivery makes the effect, the second is a repeat, other content a conflict."""
    told: list[Any] = []
    app = create_app(path, event_effect=lambda _con, event: told.append(event))
    first, again, other = ask(
        app,
        post(EVENT, "/events"),
        post(EVENT, "/events"),
        post(EVENT | {"payload": {"n": 2}}, "/events"),
    )

    assert (first.status_code, first.json()) == (200, {"accepted": True, "repeat": False})
    assert (again.status_code, again.json()) == (200, {"accepted": True, "repeat": True})
    assert other.status_code == 409
    assert other.json() == {
        "error": "event event-1 was accepted with other content; use another id"
    }
    assert told == [EVENT]
    assert requests(path) == [("event-1", 2)]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 400),
        (b'{"id":"a","event_type":"m","payload":NaN}', 400),
        (b'{"id":"a","event_type":"m","payload":1e999}', 400),
        ({"id": "a", "qty": 1}, 422),
        (EVENT | {"more": 1}, 422),
        (EVENT | {"id": "a b"}, 422),
        (EVENT | {"payload": "x" * 2**20}, 422),
    ],
)
def test_events_are_refused(path: Path, content: Any, status: int) -> None:
    """What is no JSON or no event changes nothing, and is told why."""
    (response,) = ask(create_app(path), post(content, "/events"))

    assert response.status_code == status
    assert response.json()["error"]
    assert requests(path) == []


def test_events_may_be_long(path: Path) -> None:
    """The largest payload fits however it is escaped; a longer body is not read."""
    largest = EVENT | {"payload": "\u00e9" * (2**19 - 1)}
    fits, over = ask(
        create_app(path), post(largest, "/events"), post(b" " * (2**22 + 1), "/events")
    )

    assert (fits.status_code, over.status_code) == (200, 413)


def test_events_have_a_bound_of_their_own(path: Path) -> None:
    """Each of the two paths keeps its own."""
    app = create_app(path, max_body=10, max_event_body=200)
    event, long, qty = ask(
        app,
        post(EVENT, "/events"),
        post(EVENT | {"payload": "x" * 200}, "/events"),
        post({"id": "a", "qty": 1}),
    )

    assert [each.status_code for each in (event, long, qty)] == [200, 413, 413]
