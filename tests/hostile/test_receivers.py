"""What a hostile receiver can do to the sender: have its job tried again, and no more."""

import gzip
import json
import socket
import time
import tracemalloc
from collections.abc import Callable
from itertools import count

import pytest

from lease import Permanent, Retryable
from lease.delivery import HttpSender
from tests.support.http import answer, answering, request_of, server

EVENT = {"id": "a", "qty": 1}
MEGABYTE = 1_048_576


def outcome(url: str, timeout_s: float = 2) -> object:
    """Send once; return the answer or the error, within the time-out, in little memory."""
    started_s = time.monotonic()
    tracemalloc.start()
    with HttpSender(url, timeout_s=timeout_s) as sender:
        try:
            return sender(EVENT)
        except (Retryable, Permanent) as error:
            return error
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 8 * MEGABYTE
            assert time.monotonic() < started_s + timeout_s + 5


def flooding(start: bytes, more: bytes) -> Callable[[socket.socket], None]:
    """Return a handler that never stops to answer."""

    def handle(sock: socket.socket) -> None:
        request_of(sock)
        try:
            sock.sendall(start)
            while True:
                sock.sendall(more)
        except OSError:
            pass

    return handle


def dripping(start: bytes, more: bytes) -> Callable[[socket.socket], None]:
    """Return a handler that answers byte by byte, for ever."""

    def handle(sock: socket.socket) -> None:
        request_of(sock)
        try:
            sock.sendall(start)
            for at in count():
                sock.sendall(more[at % len(more) :][:1])
                time.sleep(0.05)
        except OSError:
            pass

    return handle


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
NUMBER = b"9" * 50_000

FLOODS = {
    "body": (OK + b"\r\n", b"x" * 65_536),
    "body of an error": (b"HTTP/1.1 500 No\r\n\r\n", b"x" * 65_536),
    "chunks": (CHUNKED, b"1000\r\n" + b"x" * 4096 + b"\r\n"),
    "tiny chunks": (CHUNKED, b"1\r\nx\r\n" * 5000),
    "extensions of a chunk": (CHUNKED + b"1", b";x=y" * 5000),
    "a header": (OK + b"X: ", b"y" * 65_536),
    "headers": (OK, b"X: y\r\n" * 5000),
    "a status line": (b"HTTP/1.1 200 ", b"O" * 65_536),
    "provisional answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 500),
    "early hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 500),
    "empty lines": (b"", b"\r\n" * 5000),
    "zeros": (b"", bytes(65_536)),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_sender_survives_an_endless(flood: str):
    """However much is answered, the send ends in time, in little memory, and is no success."""
    with server(flooding(*FLOODS[flood])) as url:
        found = outcome(url)

    assert found is not True
    assert not isinstance(found, Permanent)
    assert len(str(found)) < 250
    assert str(found).isprintable()


DRIPS = {
    "status line": (b"", b"HTTP/1.1 200 OK and so on"),
    "header": (OK, b"X-And-So-On: y\r\n"),
    "body": (OK + b"Content-Length: 1000000\r\n\r\n", b'{"accepted": true} '),
    "chunk": (CHUNKED + b"FFFF\r\n", b'{"accepted": true} '),
    "error": (b"HTTP/1.1 400 No\r\nContent-Length: 1000000\r\n\r\n", b'{"error": "x"} '),
}


@pytest.mark.parametrize("drip", DRIPS)
def test_sender_waits_no_longer_than_its_time_for_a_dripping(drip: str):
    """The time-out is that of the whole send, however often a byte arrives."""
    with server(dripping(*DRIPS[drip])) as url:
        found = outcome(url, timeout_s=0.5)

    assert found is not True
    # The status of an error stands without its explanation.
    assert isinstance(found, Permanent if drip == "error" else Retryable)


BOMB = gzip.compress(b'{"accepted": true}' + b" " * (50 * MEGABYTE))


def test_sender_unpacks_no_compressed_bomb():
    """It asks for no compression and undoes none: what is compressed is no acknowledgement."""
    heard = []

    def handle(sock: socket.socket) -> None:
        heard.append(request_of(sock).decode().lower())
        sock.sendall(answer("200 OK", BOMB, "Content-Encoding: gzip"))

    with server(handle) as url:
        found = outcome(url)
    assert str(found).startswith("HTTP 200 with '\\x1f")
    assert "accept-encoding" not in heard[0]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "place", ["file:///etc/passwd", "http://127.0.0.1:1/", "//evil/", "/", "gopher://evil:70/_x"]
)
def test_sender_goes_nowhere_else(status: int, place: str):
    """A redirect is not followed: a receiver cannot send a sender to a third one."""
    with server(answering(answer(f"{status} There", b"", f"Location: {place}"))) as url:
        found = outcome(url)

    assert isinstance(found, Retryable)
    assert "redirects are not followed" in str(found)
    assert place not in str(found).replace(url, "")


def test_sender_keeps_nothing_that_a_receiver_sets():
    """No cookie, no cached or pinned thing: the second request is as the first."""
    heard = []

    def handle(sock: socket.socket) -> None:
        for _ in range(2):
            heard.append(request_of(sock))
            sock.sendall(
                answer("200 OK", b'{"accepted": true}', "Set-Cookie: a=b", "Alt-Svc: h2=':1'")
            )

    with server(handle) as url, HttpSender(url) as sender:
        assert sender(EVENT) is True
        assert sender(EVENT) is True
    assert heard[0] == heard[1]


ANSWERS = {
    "brackets": b"[" * 60_000,
    "digits": b'{"accepted": true, "x": ' + NUMBER + b"}",
    "endless": b'{"accepted": true, "x": 1e999}',
    "twice": b'{"accepted": false, "accepted": true}',
    "half of a pair": b'{"accepted": "\\ud800"}',
    "one": b'{"accepted": 1}',
    "text": b'{"accepted": "true"}',
    "list": b'[{"accepted": true}]',
    "null byte": b'{"accepted": true}\x00',
    "marked": b'\xef\xbb\xbf{"accepted": true}',
    "UTF-16": '{"accepted": true}'.encode("utf-16"),
    "more than one": b'{"accepted": true}{"accepted": true}',
}


@pytest.mark.parametrize("body", ANSWERS)
def test_sender_takes_nothing_else_for_an_acknowledgement(body: str):
    """Only one JSON object whose `accepted` is true has a job done."""
    with server(answering(answer("200 OK", ANSWERS[body]))) as url:
        found = outcome(url)

    assert type(found) is str
    assert found.isprintable()


def test_sender_takes_no_acknowledgement_out_of_an_error():
    """Nor does a body that says so make a failure a success."""
    with server(answering(answer("500 No", b'{"accepted": true}'))) as url:
        assert isinstance(outcome(url), Retryable)


PLAIN = answer("200 OK", b'{"accepted": true}')
CHUNKS = CHUNKED + b'12\r\n{"accepted": true}\r\n0\r\n\r\n'


@pytest.mark.parametrize("extra", [PLAIN, CHUNKS, b"\r\n", b"HTTP/1.1 200 OK\r\n"], ids=range(4))
@pytest.mark.parametrize("first", [PLAIN, CHUNKS], ids=["plain", "chunks"])
def test_sender_takes_no_answer_for_that_to_another_job(first: bytes, extra: bytes):
    """What follows an answer unasked acknowledges nothing: the next job has its own connection."""
    with (
        server(answering(first + extra), answering(answer("500 No", b"{}"))) as url,
        HttpSender(url, timeout_s=2) as sender,
    ):
        assert sender(EVENT) is True
        with pytest.raises(Retryable, match="answered 500"):
            sender({"id": "b", "qty": 1})


@pytest.mark.parametrize("response", [PLAIN, CHUNKS], ids=["plain", "chunks"])
def test_sender_keeps_a_connection_that_is_in_step(response: bytes):
    """An answer that ends where it should leaves its connection for the next job."""

    def twice(sock: socket.socket) -> None:
        for _ in range(2):
            request_of(sock)
            sock.sendall(response)

    with server(twice) as url, HttpSender(url, timeout_s=2) as sender:
        assert sender(EVENT) is True
        assert sender(EVENT) is True


def test_sender_quotes_little_and_nothing_secret():
    """Neither the password of the URL nor more than a line of the answer is in a message."""
    words = json.dumps({"error": "x" * 60_000 + "s3cret"}).encode()
    with server(answering(answer("400 No", words))) as url:
        found = outcome(url.replace("http://", "http://user:s3cret@").rstrip("/") + "/?k=s3cret")

    assert isinstance(found, Permanent)
    assert "s3cret" not in str(found)
    assert len(str(found)) < 200
