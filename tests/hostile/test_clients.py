"""What a hostile client can do to the receiver: nothing but send events."""

import json
import random
import socket
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lease.inbox import _app
from lease.inbox._app import create_app
from lease.inbox._room import Room
from lease.inbox.http import serve
from tests.support.cli import until
from tests.support.http import Receiver, ask, post, rows, speak

HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
MEGABYTE = 1_048_576


def request(body: bytes, *headers: str, path: str = "/") -> bytes:
    """Return a whole request that ends its connection."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: x",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


EVENT = b'{"id": "a", "qty": 1}'


def test_receiver_listens_on_loopback_unless_told_otherwise(tmp_path: Path):
    """No other machine reaches what was started without a thought."""
    with Receiver(tmp_path / "in.db") as receiver:
        bound = {each.laddr.ip for each in psutil.Process(receiver.process.pid).net_connections()}

    assert bound == {"127.0.0.1"}
    assert serve.__kwdefaults__["host"] == "127.0.0.1"


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:8000", "null", ""])
@pytest.mark.parametrize("path", ["/", "/events"])
def test_receiver_takes_nothing_from_a_web_page(tmp_path: Path, origin: str, path: str):
    """A page that has a name of its own lead to loopback is the same origin to its browser."""
    (response,) = ask(
        create_app(tmp_path / "in.db"), post({"id": "a", "qty": 1}, path, Origin=origin)
    )

    assert response.status_code == 403
    assert response.json() == {"error": "web pages may not send events"}
    assert rows(tmp_path / "in.db") == ([], [])


def test_receiver_gives_no_page_leave_to_send(tmp_path: Path):
    """The question that browsers ask before such a request is not answered with a yes."""
    question = {"method": "OPTIONS", "url": "/", "headers": {"Origin": "http://evil.example"}}
    (response,) = ask(create_app(tmp_path / "in.db"), question)

    assert response.status_code == 405
    assert "access-control-allow-origin" not in response.headers


BOMBS = {
    "brackets": b"[" * 16_000,
    "objects": b'{"a":' * 3000,
    "digits": b'{"id": "a", "qty": ' + b"9" * 16_000 + b"}",
    "endless": b'{"id": "a", "qty": 1e999999}',
    "infinite": b'{"id": "a", "qty": Infinity}',
    "twice": b'{"id": "a", "qty": 1, "qty": 2}',
    "twice hidden": b'{"id": "a", "qty": 1, "\\u0071ty": 2}',
    "half of a pair": b'{"id": "\\ud800", "qty": 1}',
    "null byte": b'{"id": "a\\u0000b", "qty": 1}',
    "SQL": b'{"id": "a\'); DROP TABLE inbox; --", "qty": 1}',
    "no UTF-8": b'{"id": "\xff", "qty": 1}',
    "UTF-16": '{"id": "a", "qty": 1}'.encode("utf-16"),
    "fraction": b'{"id": "a", "qty": 1.0}',
    "truth": b'{"id": "a", "qty": true}',
    "too much": b'{"id": "a", "qty": 1001}',
    "too little": b'{"id": "a", "qty": 0}',
    "too long": b'{"id": "' + b"a" * 65 + b'", "qty": 1}',
    "too short": b'{"id": "", "qty": 1}',
    "more": b'{"id": "a", "qty": 1, "__proto__": {}}',
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_receiver_refuses_a_bomb(tmp_path: Path, bomb: str):
    """It answers with one clear error, at once, and nothing is written."""
    started_s = time.monotonic()
    (response,) = ask(create_app(tmp_path / "in.db"), post(BOMBS[bomb]))

    assert response.status_code in (400, 422)
    assert list(response.json()) == ["error"]
    assert response.json()["error"].isprintable()
    assert len(response.json()["error"]) < 250
    assert time.monotonic() < started_s + 5
    assert rows(tmp_path / "in.db") == ([], [])


PAYLOADS = {
    "brackets": b"[" * 2_000_000,
    "objects": b'{"a":' * 700_000,
    "digits": b"9" * 4_000_000,
    "fraction": b"0." + b"9" * 4_000_000 + b"e-99999999",
    "escapes": b'"' + b"\\ud83d" * 600_000 + b'"',
    "over 256 deep": b"[" * 257 + b"]" * 257,
}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_receiver_refuses_a_payload_of_bombs(tmp_path: Path, payload: str):
    """An outbox's event may be long, and no more dangerous for it."""
    body = b'{"id": "a", "event_type": "t", "payload": ' + PAYLOADS[payload] + b"}"
    started_s = time.monotonic()
    (response,) = ask(create_app(tmp_path / "in.db"), post(body, "/events"))

    assert response.status_code in (400, 422) or payload == "fraction"
    assert time.monotonic() < started_s + 10


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.one_of(st.binary(max_size=300), st.text(max_size=200).map(str.encode), st.nothing()))
def test_receiver_answers_any_body(tmp_path_factory: pytest.TempPathFactory, body: bytes):
    """Whatever a body holds, the answer is one of those that are told, never a failure."""
    path = tmp_path_factory.mktemp("any") / "in.db"
    answers = ask(create_app(path), post(body), post(body, "/events"), raising=True)

    assert {each.status_code for each in answers} <= {400, 422}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(JSON, JSON, JSON)
def test_receiver_answers_any_event(
    tmp_path_factory: pytest.TempPathFactory, one: object, two: object, three: object
):
    """Whatever the parts of an event are, the answer is one of those that are told."""
    path = tmp_path_factory.mktemp("any") / "in.db"
    answers = ask(
        create_app(path),
        post({"id": one, "qty": two}),
        post({"id": "a", "event_type": "t", "payload": three}, "/events"),
        post({"id": one, "event_type": two, "payload": three}, "/events"),
        raising=True,
    )

    assert {each.status_code for each in answers} <= {200, 400, 422}


NO_REQUESTS = [
    b"\x00" * 100_000,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
    b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"POST / HTTP/1.1\r\n" + b"X: y\r\n" * 30_000 + b"\r\n",
    b"POST / HTTP/1.1\r\nX: " + b"y" * 200_000,
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nContent-Length: 8\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nConnection: close\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFF\r\n",
    b"POST / HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/9.9\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"POST /../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"POST http://evil/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"CONNECT evil:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
]


def test_receiver_survives_what_is_no_request(tmp_path: Path):
    """The connection ends, the next one is served, and nothing is accepted."""
    with Receiver(tmp_path / "in.db") as receiver:
        for raw in NO_REQUESTS:
            said = speak(receiver.address, raw)
            assert said == b"" or said.startswith((b"HTTP/1.1 4", b"HTTP/1.1 505")), raw[:60]
            assert b"200 OK" in speak(receiver.address, HEALTH)
        code, logged = receiver.stop()
    assert code == 0
    assert "Traceback" not in logged
    assert logged.replace("\n", "").isprintable()
    assert rows(tmp_path / "in.db") == ([], [])


def test_receiver_takes_the_second_request_for_no_part_of_the_first(tmp_path: Path):
    """A body that is declared in two ways is refused, or ends the connection: nothing is let in."""
    smuggled = request(b'{"id": "smuggled", "qty": 1}')
    first = (
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    with Receiver(tmp_path / "in.db") as receiver:
        said = speak(receiver.address, first + smuggled)
    assert said.startswith(b"HTTP/1.1 400")
    assert said.count(b"HTTP/1.1") == 1
    assert rows(tmp_path / "in.db") == ([], [])


def test_receiver_refuses_a_body_of_two_lengths(tmp_path: Path):
    """Whichever of them is true."""
    request = post(EVENT, **{"Transfer-Encoding": "chunked"})
    request["headers"]["Content-Length"] = str(len(EVENT))
    (response,) = ask(create_app(tmp_path / "in.db"), request)

    assert (response.status_code, response.headers["connection"]) == (400, "close")
    assert response.json() == {"error": "the body must have one length, not two"}


@pytest.mark.timeout(100)
def test_receiver_outlives_slow_clients(tmp_path: Path):
    """Clients that never end what they began are hung up on; others are served meanwhile."""
    starts = [b"", b"P", b"POST / HTTP/1.1\r\nX: ", request(EVENT)[:-3]]
    with Receiver(tmp_path / "in.db", body_s=1.0) as receiver, ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(receiver.address))
            for _ in range(25)
            for _ in starts
        ]
        for number, sock in enumerate(slow):
            sock.sendall(starts[number % 4])
        assert b"200 OK" in speak(receiver.address, HEALTH)
        for sock in slow:
            sock.settimeout(20)
            while sock.recv(1000):
                pass
        assert b'"repeat":false' in speak(receiver.address, request(EVENT))


def test_receiver_bounds_what_it_holds(tmp_path: Path):
    """However many long bodies come at once, no more than the room is held; the rest come again."""
    body = b'{"id": "a", "event_type": "t", "payload": "' + b"x" * (3 * MEGABYTE)
    head = request(body + b'"}', path="/events")[: -len(body) - 2]
    with Receiver(tmp_path / "in.db", body_s=5.0) as receiver, ExitStack() as stack:
        process = psutil.Process(receiver.process.pid)
        before = process.memory_info().rss
        for _ in range(40):
            sock = stack.enter_context(socket.create_connection(receiver.address))
            sock.settimeout(10)
            try:
                sock.sendall(head + body)
            except ConnectionError:
                continue
        assert process.memory_info().rss - before < 80 * MEGABYTE
        assert b'"repeat":false' in speak(receiver.address, request(EVENT))


def test_receiver_tells_whom_it_has_no_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The answer is one that a sender tries again after; what was taken is given back."""
    monkeypatch.setattr(_app, "Room", lambda _size: Room(len(EVENT)))
    app = create_app(tmp_path / "in.db")
    refused, accepted, again = ask(app, post(EVENT + b" "), post(EVENT), post(EVENT))

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.json() == {"error": "too much at once; send again"}
    assert (accepted.status_code, again.status_code) == (200, 200)


def test_room_gives_back_what_was_taken():
    """To the byte, also where a place was refused more."""
    room = Room(10)
    with room.place() as one, room.place() as two:
        assert one.grow(6)
        assert not two.grow(5)
        assert two.grow(4)
        assert not one.grow(1)
    with room.place() as again:
        assert again.grow(10)


def test_receiver_cuts_connections_that_are_too_many(tmp_path: Path):
    """Those that ask for nothing take no more descriptors than leaves enough for the rest."""
    with Receiver(tmp_path / "in.db") as receiver:
        process = psutil.Process(receiver.process.pid)
        with ExitStack() as stack:
            for _ in range(750):
                stack.enter_context(socket.create_connection(receiver.address))
            until(lambda: 550 < process.num_fds() < 650)
        until(lambda: process.num_fds() < 100)
        assert b'"repeat":false' in speak(receiver.address, request(EVENT))
        code, logged = receiver.stop()
    assert (code, logged.count("Traceback")) == (0, 0)


def test_receiver_recovers_from_a_flood_of_connections(tmp_path: Path):
    """With its descriptors used up it serves nobody; once they are free, everybody."""
    with (
        Receiver(tmp_path / "in.db", descriptors=40) as receiver,
        ThreadPoolExecutor() as threads,
    ):
        assert receiver.process.stderr is not None
        complaints = threads.submit(receiver.process.stderr.read)
        with ExitStack() as stack:
            for _ in range(100):
                stack.enter_context(socket.create_connection(receiver.address))
            until(lambda: psutil.Process(receiver.process.pid).num_fds() >= 40)
        assert b'"repeat":false' in speak(receiver.address, request(EVENT))
        receiver.process.terminate()
        assert len(complaints.result()) < 1_000_000
    assert receiver.process.returncode == 0
    assert rows(tmp_path / "in.db") == ([("a", 1, 1)], [("a", 1)])


def test_receiver_forgets_nothing_of_a_storm(tmp_path: Path):
    """Torn, doubled and mixed up, what was answered as accepted is there, once."""
    chance = random.Random(1)
    accepted = set()
    with Receiver(tmp_path / "in.db") as receiver:
        for number in range(60):
            body = json.dumps({"id": f"e-{number % 20}", "qty": 1}).encode()
            raw = request(body)
            if chance.random() < 0.4:
                raw = raw[: chance.randrange(len(raw))]
                with socket.create_connection(receiver.address) as sock:
                    sock.sendall(raw)
                continue
            if b'"accepted":true' in speak(receiver.address, raw):
                accepted.add(f"e-{number % 20}")
        assert receiver.stop()[0] == 0
    with closing(sqlite3.connect(tmp_path / "in.db")) as con:
        effects = [name for (name,) in con.execute("SELECT id FROM effects")]
    assert accepted <= set(effects)
    assert len(effects) == len(set(effects))
