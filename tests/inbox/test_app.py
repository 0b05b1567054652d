"""The receiver's application: each answer, and that a refusal changes nothing."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from lease.inbox import accept, open_inbox
from lease.inbox.http import create_app
from tests.support.http import ask, post, rows
from tests.support.queue import content, reading, writing
from tests.support.refused import integers, table

EVENT = {"id": "event-1", "qty": 7}
NOW = 10_000


def clock() -> int:
    """Return the moment at which the tests act."""
    return NOW


def test_app_accepts_once_and_recognises_the_repeat(path: Path) -> None:
    """The first delivery is accepted, the second a repeat of the one effect."""
    first, second = ask(create_app(path, clock=clock), post(EVENT), post(EVENT))

    assert (first.status_code, first.json()) == (200, {"accepted": True, "repeat": False})
    assert (second.status_code, second.json()) == (200, {"accepted": True, "repeat": True})
    assert rows(path) == ([("event-1", 7, 2)], [("event-1", 7)])


def test_app_knows_its_events_after_a_restart(path: Path) -> None:
    """What was accepted is a repeat for the next application on the same file."""
    ask(create_app(path, clock=clock), post(EVENT))
    (again,) = ask(create_app(path, clock=clock), post(EVENT))

    assert again.json() == {"accepted": True, "repeat": True}
    assert rows(path) == ([("event-1", 7, 2)], [("event-1", 7)])


def test_app_uses_the_clock_it_is_given(path: Path) -> None:
    """Times come from the injected clock; without one they are the wall clock's."""
    ask(create_app(path, clock=clock), post(EVENT))
    ask(create_app(path), post({"id": "later", "qty": 1}))

    with closing(sqlite3.connect(path)) as con:
        times = dict(con.execute("SELECT id, first_ms FROM inbox").fetchall())
    assert times["event-1"] == NOW
    assert times["later"] > 1_700_000_000_000


def test_app_makes_the_applications_effect(path: Path) -> None:
    """The effect runs once an event, and not for a repeat."""
    seen: list[Any] = []

    def effect(_con: sqlite3.Connection, event: Any) -> None:
        seen.append(event)

    ask(create_app(path, clock=clock, effect=effect), post(EVENT), post(EVENT))

    assert seen == [EVENT]
    assert rows(path) == ([("event-1", 7, 2)], [])


def test_app_reports_its_health(path: Path) -> None:
    """GET and HEAD of /health answer 200."""
    get, head = ask(
        create_app(path), {"method": "GET", "url": "/health"}, {"method": "HEAD", "url": "/health"}
    )

    assert (get.status_code, get.json()) == (200, {"ok": True})
    assert head.status_code == 200


LONG = 100
NESTED = b"[" * 100_000

REFUSED = {
    "empty": (post(b""), 400, "the text is not JSON"),
    "no-json": (post(b"{"), 400, "the text is not JSON"),
    "two-values": (post(b'{"id": "a", "qty": 1} 2'), 400, "the text is not JSON"),
    "byte-order-mark": (post(b'\xef\xbb\xbf{"id": "a", "qty": 1}'), 400, "the text is not JSON"),
    "not-utf-8": (post(b'{"id": "\xff", "qty": 1}'), 400, "the text is not UTF-8 at byte 8"),
    "utf-16": (post('{"id": "a", "qty": 1}'.encode("utf-16")), 400, "the text is not UTF-8"),
    "key-twice": (post(b'{"id": "a", "qty": 1, "qty": 2}'), 400, "a key twice"),
    "nan": (post(b'{"id": "a", "qty": NaN}'), 400, "NaN is no JSON number"),
    "infinity": (post(b'{"id": "a", "qty": -Infinity}'), 400, "-Infinity is no JSON number"),
    "many-digits": (post(b'{"id": "a", "qty": ' + b"9" * 5000 + b"}"), 400, "5000 digits"),
    "array": (post([EVENT]), 422, "event must be an object of just id and qty, not an array"),
    "null": (post(None), 422, "event must be"),
    "no-qty": (post({"id": "a"}), 422, "just id and qty, not one without qty"),
    "no-id": (post({"qty": 1}), 422, "event must be"),
    "another-key": (post({**EVENT, "token": 1}), 422, "not one with 'token'"),
    "wrong-key": (
        post({"id": "a", "quantity": 1}),
        422,
        "not one without qty but with 'quantity'",
    ),
    "id-number": (post({"id": 1, "qty": 1}), 422, "id must be"),
    "id-empty": (post({"id": "", "qty": 1}), 422, "id must be"),
    "id-long": (post({"id": "a" * 65, "qty": 1}), 422, "id must be"),
    "id-space": (post({"id": "a b", "qty": 1}), 422, "id must be"),
    "id-surrogate": (post(b'{"id": "\\ud800", "qty": 1}'), 422, "id must be"),
    "qty-0": (post({"id": "a", "qty": 0}), 422, "qty must be a whole number from 1 to 1000, not 0"),
    "qty-1001": (post({"id": "a", "qty": 1001}), 422, "qty must be"),
    "qty-float": (post(b'{"id": "a", "qty": 1.0}'), 422, "qty must be"),
    "qty-huge-float": (post(b'{"id": "a", "qty": 1e999}'), 400, "JSON"),
    "qty-true": (post({"id": "a", "qty": True}), 422, "not true"),
    "qty-text": (post({"id": "a", "qty": "1"}), 422, "qty must be"),
    "conflict": (post({"id": "event-1", "qty": 8}), 409, "accepted with another qty"),
    "form": (post(EVENT, **{"Content-Type": "text/plain"}), 415, "application/json"),
    "latin-1": (post(EVENT, **{"Content-Type": "application/json; charset=latin-1"}), 415, "UTF-8"),
    "no-type": ({"method": "POST", "url": "/", "content": b"{}"}, 415, "application/json"),
    "get": ({"method": "GET", "url": "/"}, 405, "Method Not Allowed"),
    "put": ({**post(EVENT), "method": "PUT"}, 405, "Method Not Allowed"),
    "delete": ({"method": "DELETE", "url": "/"}, 405, "Method Not Allowed"),
    "post-health": (post(EVENT, "/health"), 405, "Method Not Allowed"),
    "elsewhere": (post(EVENT, "/elsewhere"), 404, "Not Found"),
    "slash": ({"method": "GET", "url": "/health/"}, 404, "Not Found"),
    "double-slash": (post(EVENT, "http://receiver//"), 404, "Not Found"),
}


@pytest.mark.parametrize(("request_", "status", "says"), REFUSED.values(), ids=REFUSED)
def test_app_refuses(path: Path, request_: dict[str, Any], status: int, says: str) -> None:
    """Each refusal has its status and one line of JSON, and leaves the file as it was."""
    with closing(open_inbox(path)) as con:
        accept(con, EVENT, NOW)  # type: ignore[arg-type]  # a plain dict
    before = content(path)

    (response,) = ask(create_app(path), request_)

    assert (response.status_code, list(response.json())) == (status, ["error"])
    assert says in response.json()["error"]
    assert "\n" not in response.json()["error"]
    assert content(path) == before


def test_app_refuses_a_nesting_bomb(path: Path) -> None:
    """A body of brackets is refused, however deep it is allowed to be."""
    (response,) = ask(create_app(path, max_body=len(NESTED)), post(NESTED))

    assert (response.status_code, response.json()) == (
        400,
        {"error": "the JSON is nested too deeply"},
    )


def test_app_hides_the_first_quantity_from_a_conflict(path: Path) -> None:
    """Whoever sends another quantity is not told the one that was accepted."""
    _, response = ask(create_app(path), post({"id": "a", "qty": 777}), post({"id": "a", "qty": 2}))

    assert response.status_code == 409
    assert "777" not in response.text


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "Application/JSON",
        "application/json;charset=utf-8",
        'application/json; charset="UTF-8"',
        "application/json ;",
    ],
)
def test_app_takes_json_by_any_spelling(path: Path, kind: str) -> None:
    """The content type is read as HTTP spells it."""
    (response,) = ask(create_app(path), post(EVENT, **{"Content-Type": kind}))

    assert response.status_code == 200


def test_app_names_the_methods_it_allows(path: Path) -> None:
    """405 bears the Allow header that HTTP asks for."""
    (response,) = ask(create_app(path), {"method": "GET", "url": "/"})

    assert response.headers["allow"] == "POST"


BODY = b'{"id": "event-1", "qty": 7}'


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    """Yield a body part by part, without a declared length."""
    for part in parts:
        yield part


@pytest.mark.parametrize("spare", [0, 1])
def test_app_accepts_a_body_up_to_the_limit(path: Path, spare: int) -> None:
    """A body of exactly the limit is read, declared or not."""
    app = create_app(path, max_body=len(BODY) + spare)
    declared, streamed = ask(app, post(BODY), post(chunks(BODY[:9], b"", BODY[9:])))

    assert (declared.status_code, streamed.status_code) == (200, 200)


def test_app_refuses_a_declared_body_over_the_limit_unread(path: Path) -> None:
    """One byte too many in the header is enough; nothing is read and the connection ends."""

    async def unreadable() -> AsyncIterator[bytes]:
        raise AssertionError("read")
        yield b""

    app = create_app(path, max_body=LONG)
    (response,) = ask(app, post(unreadable(), **{"Content-Length": str(LONG + 1)}))

    assert (response.status_code, response.json()) == (
        413,
        {"error": f"the body may have {LONG} bytes"},
    )
    assert response.headers["connection"] == "close"


def test_app_reads_no_further_than_the_limit(path: Path) -> None:
    """Of a body without a declared length the rest is not asked for."""
    asked: list[int] = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            asked.append(LONG)
            yield b" " * LONG

    (response,) = ask(create_app(path, max_body=2 * LONG), post(endless()))

    assert response.status_code == 413
    assert response.headers["connection"] == "close"
    assert len(asked) <= 4


def test_app_gives_up_on_a_slow_body(path: Path) -> None:
    """A body that does not arrive in time is a 408, and the connection ends."""

    async def stalled() -> AsyncIterator[bytes]:
        yield BODY[:5]
        await asyncio.Event().wait()

    (response,) = ask(create_app(path, body_s=0.05), post(stalled()))

    assert (response.status_code, response.json()) == (408, {"error": "the body took over 0.05 s"})
    assert response.headers["connection"] == "close"


def test_app_answers_nobody_who_has_left(path: Path) -> None:
    """A client that goes away in the middle of a body is no failure of the receiver."""
    app = create_app(path)
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "headers": [(b"content-type", b"application/json")],
        "query_string": b"",
    }
    asyncio.run(app(scope, receive, send))

    assert sent[0]["status"] == 400


def test_app_answers_a_locked_inbox_with_try_again(path: Path) -> None:
    """While another connection writes, the answer is 503 with Retry-After; afterwards 200."""
    open_inbox(path).close()
    app = create_app(path)
    with writing(path):
        (locked,) = ask(app, post(EVENT))
    (free,) = ask(create_app(path), post(EVENT))

    assert (locked.status_code, locked.json()) == (
        503,
        {"error": "the inbox is locked; send again"},
    )
    assert locked.headers["retry-after"] == "1"
    assert free.json() == {"accepted": True, "repeat": False}


def test_app_answers_a_failed_commit_with_try_again(path: Path) -> None:
    """While another connection reads, COMMIT fails: 503, and nothing was accepted."""
    open_inbox(path).close()
    with reading(path):
        (response,) = ask(create_app(path), post(EVENT))

    assert response.status_code == 503
    assert rows(path) == ([], [])


def test_app_answers_a_full_line_with_try_again(path: Path) -> None:
    """An event whose turn does not come in time is a 503, and is not accepted later."""
    entered, leave = threading.Event(), threading.Event()

    def slow(_con: sqlite3.Connection, _event: Any) -> None:
        entered.set()
        leave.wait()

    app = create_app(path, effect=slow, turn_s=0.2)

    async def converse() -> list[httpx.Response]:
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://receiver"
            ) as client,
        ):
            first = asyncio.create_task(client.request(**post({"id": "slow", "qty": 1})))
            await asyncio.to_thread(entered.wait)
            second = await client.request(**post(EVENT))
            answers = [await first, second]
            leave.set()
            return answers

    first, second = asyncio.run(converse())

    for response in (first, second):
        assert (response.status_code, response.json()) == (
            503,
            {"error": "the inbox is busy; send again"},
        )
        assert response.headers["retry-after"] == "1"
    # The one in hand went on and is a repeat next time; the one in line never began.
    assert rows(path)[0] == [("slow", 1, 1)]


ERRORS = [
    RuntimeError("secret"),
    TimeoutError("secret"),
    ValueError("secret"),
    sqlite3.OperationalError("secret"),
    sqlite3.IntegrityError("secret"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_app_fails_without_a_detail(path: Path, error: Exception) -> None:
    """What the effect raises is a 500 that tells nothing, raised on for the server to log."""

    def effect(_con: sqlite3.Connection, _event: Any) -> None:
        raise error

    app = create_app(path, effect=effect)

    (response,) = ask(app, post(EVENT))

    assert response.status_code == 500
    assert "secret" not in response.text
    assert rows(path) == ([], [])
    with pytest.raises(type(error), match="secret"):
        ask(app, post(EVENT), raising=True)


def test_app_fails_on_a_clock_that_is_unusable(path: Path) -> None:
    """A clock that returns nonsense is the receiver's failure, not the sender's."""
    (response,) = ask(create_app(path, clock=lambda: -1), post(EVENT))

    assert response.status_code == 500
    assert rows(path) == ([], [])


SECONDS = [
    pytest.param(0, id="0"),
    pytest.param(-1.0, id="negative"),
    pytest.param(86_401, id="over-a-day"),
    pytest.param(float("inf"), id="inf"),
    pytest.param(float("nan"), id="nan"),
    pytest.param(True, id="bool"),
    pytest.param("1", id="str"),
    pytest.param(None, id="none"),
]


@pytest.mark.parametrize(
    ("argument", "value"),
    table(max_body=integers(1, 2**31), body_s=SECONDS, turn_s=SECONDS),
)
def test_create_app_refuses(path: Path, argument: str, value: object) -> None:
    """An argument of another type or range is a ValueError, and no file is made."""
    options: Any = {argument: value}

    with pytest.raises(ValueError, match=f"{argument} must be"):
        create_app(path, **options)
    assert not path.exists()


def test_app_opens_its_inbox_with_the_first_event_at_the_latest(path: Path) -> None:
    """A server that knows no start-up still gets an application that works."""

    async def converse() -> int:
        app = create_app(path)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://receiver"
        ) as client:
            response = await client.request(**post(EVENT))
        async with app.router.lifespan_context(app):
            pass
        return response.status_code

    assert asyncio.run(converse()) == 200


def test_app_fails_to_start_on_an_unusable_file(path: Path) -> None:
    """A file that is no inbox stops the start, before any request."""
    path.mkdir()

    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        ask(create_app(path))
