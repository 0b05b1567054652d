"""HttpSender: what each answer, and each failure to answer, comes to."""

import http.server
import json
import os
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from lease import BadAck, Permanent, Retryable, jobs
from lease.delivery import HttpSender
from tests.support import tls
from tests.support.http import Handler, answer, answering, request_of, server
from tests.support.processes import DEADLINE_S
from tests.support.refused import IDENTIFIERS, integers, mappings, within

EVENT: Any = {"id": "event-1", "qty": 7}
ACK = b'{"accepted": true}'


def sent_to(*handlers: Handler, timeout_s: float = 30) -> object:
    """Send the event once to a server with these handlers and return what came of it."""
    with server(*handlers) as url, HttpSender(url, timeout_s=timeout_s) as send:
        return send(EVENT)


def test_sender_posts_the_event() -> None:
    """The request is one POST of the two keys as JSON, with the id as its idempotency key."""
    heard: list[bytes] = []

    def handle(sock: socket.socket) -> None:
        heard.append(request_of(sock))
        sock.sendall(answer("200 OK", ACK))

    with server(handle) as url, HttpSender(f"{url}hook?a=b%20c") as send:
        assert send(EVENT) is True

    head, _, body = heard[0].partition(b"\r\n\r\n")
    request, *headers = head.decode().split("\r\n")
    fields = dict(header.split(": ") for header in headers)
    assert request == "POST /hook?a=b%20c HTTP/1.1"
    assert json.loads(body) == EVENT
    assert fields == {
        "Host": url.removeprefix("http://").rstrip("/"),
        "Accept": "application/json",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Idempotency-Key": "event-1",
        "User-Agent": "lease-queue",
    }
    assert EVENT == {"id": "event-1", "qty": 7}


@pytest.mark.parametrize("status", [200, 201, 202, 299])
@pytest.mark.parametrize(
    "body", [ACK, b'{"accepted": true, "repeat": true}', b' {"x": [1], "accepted" : true}\n']
)
def test_sender_returns_true_for_an_ack(status: int, body: bytes) -> None:
    """2xx with an object whose `accepted` is true is the acknowledgement."""
    assert sent_to(answering(answer(f"{status} Fine", body))) is True


NO_ACK = {
    "empty": b"",
    "no-json": b"OK",
    "false": b'{"accepted": false}',
    "one": b'{"accepted": 1}',
    "text": b'{"accepted": "true"}',
    "null": b'{"accepted": null}',
    "other-key": b'{"Accepted": true}',
    "bare-true": b"true",
    "array": b'[{"accepted": true}]',
    "nested": b'{"answer": {"accepted": true}}',
    "both": b'{"accepted": false, "accepted": true}',
    "nan": b'{"accepted": true, "x": NaN}',
    "not-utf-8": b'{"accepted": true, "x": "\xff"}',
    "two-values": ACK + ACK,
    "bomb": b"[" * 60_000,
}


@pytest.mark.parametrize("body", NO_ACK.values(), ids=NO_ACK)
def test_sender_describes_what_is_no_ack(body: bytes) -> None:
    """2xx with anything else is not True: a short description that a log can show."""
    result = sent_to(answering(answer("200 OK", body)))

    assert type(result) is str
    assert result.startswith("HTTP 200 with '")
    assert len(result) < 300


@pytest.mark.parametrize("status", ["204 No Content", "205 Reset Content"])
def test_sender_takes_no_content_for_no_ack(status: str) -> None:
    """A success without a body says nothing of an acceptance."""
    result = sent_to(answering(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode()))

    assert result == f"HTTP {status[:3]} with ''"


def test_run_once_keeps_the_lease_of_what_is_no_ack(tmp_path: Path) -> None:
    """The description makes run_once raise BadAck, which quotes it."""
    with closing(jobs.open_queue(tmp_path / "queue.db")) as con:
        jobs.enqueue(con, EVENT, 0, 1000)
        with (
            server(answering(answer("200 OK", b"hi"))) as url,
            HttpSender(url) as send,
            pytest.raises(BadAck, match="HTTP 200 with 'hi'"),
        ):
            jobs.run_once(con, "w", lambda: 0, send, 0)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 501, 502, 503, 504, 599, 600, 999])
def test_sender_raises_retryable_for_a_status(status: int) -> None:
    """The receiver may take it later; the message names where and why."""
    with pytest.raises(Retryable, match=rf"^http://127\.0\.0\.1:\d+/ answered {status}$"):
        sent_to(answering(answer(f"{status} No", b"")))


@pytest.mark.parametrize(
    "status", [400, 401, 403, 404, 405, 407, 409, 410, 413, 415, 422, 424, 426, 428, 430, 499]
)
def test_sender_raises_permanent_for_a_status(status: int) -> None:
    """No later attempt can succeed; the message names where and why."""
    with pytest.raises(Permanent, match=rf"^http://127\.0\.0\.1:\d+/ answered {status}$"):
        sent_to(answering(answer(f"{status} No", ACK)))


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308, 399])
def test_sender_follows_no_redirect(status: int) -> None:
    """A redirect is retried until the URL is corrected: no job is lost to a wrong address."""
    moved = answer(f"{status} Moved", b"" if status == 304 else ACK, "Location: http://[bad")

    with pytest.raises(Retryable, match=f"answered {status}; redirects are not followed"):
        sent_to(answering(moved))


def test_sender_quotes_the_receivers_error() -> None:
    """What the receiver gives as its error is in the message, shortened and without controls."""
    body = json.dumps({"error": "no\n\x1b[31m" + "x" * 500}).encode()

    with pytest.raises(Permanent) as caught:
        sent_to(answering(answer("422 No", body)))
    assert r"answered 422: 'no\n\x1b[31mxxx" in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "body", [b'{"error": 1}', b'{"detail": "x"}', b"<html>", b"[]", b"9" * 70_000]
)
def test_sender_quotes_no_other_body(body: bytes) -> None:
    """Whatever else the body is, the status alone is the message."""
    with pytest.raises(Permanent, match=r"answered 422$"):
        sent_to(answering(answer("422 No", body)))


@pytest.mark.parametrize("status", [400, 503])
def test_sender_believes_a_status_whose_body_fails(status: int) -> None:
    """A body that breaks off does not change what the status says."""
    cut = answer(f"{status} No", b'{"error": "x"}')[:-1]

    with pytest.raises(Permanent if status == 400 else Retryable, match=f"answered {status}$"):
        sent_to(answering(cut))


BROKEN = {
    "nothing": b"",
    "half-a-status-line": b"HTTP/1.1 2",
    "no-http": b"SSH-2.0-OpenSSH_9.6\r\n",
    "long-garbage": b"SSH-" + b"x" * 5000 + b"\r\n\r\n",
    "half-a-header": b"HTTP/1.1 200 OK\r\nContent-Le",
    "half-a-body": answer("200 OK", ACK)[:-1],
    "length-twice": answer("200 OK", ACK, "Content-Length: 1"),
    "bad-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "half-a-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n12\r\n" + ACK,
    "huge-header": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000,
    "switching": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
}


@pytest.mark.parametrize("sent", BROKEN.values(), ids=BROKEN)
def test_sender_raises_retryable_for_a_broken_answer(sent: bytes) -> None:
    """An answer that is no whole HTTP response says nothing; the message stays short."""

    def handle(sock: socket.socket) -> None:
        request_of(sock)
        # The sender may hang up before it has all of it.
        with suppress(ConnectionError):
            sock.sendall(sent)

    with pytest.raises(Retryable, match=r"^http://127\.0\.0\.1:\d+/ ") as caught:
        sent_to(handle)
    assert len(str(caught.value)) < 200


def test_sender_raises_retryable_if_nobody_listens() -> None:
    """A refused connection is a later attempt's chance; the message says where and why."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    with (
        HttpSender(f"http://127.0.0.1:{port}") as send,
        pytest.raises(Retryable, match=f"^http://127.0.0.1:{port} failed: Connection refused$"),
    ):
        send(EVENT)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 64 + ".invalid", "a..b"])
def test_sender_raises_retryable_for_a_host_without_an_address(host: str) -> None:
    """A name that does not resolve may resolve later."""
    with HttpSender(f"http://{host}/") as send, pytest.raises(Retryable, match="no add") as caught:
        send(EVENT)
    assert "Err" not in str(caught.value)


def dripping(before: bytes, drip: bytes) -> Handler:
    """Return a handler that sends something, and then a little more again and again."""

    def handle(sock: socket.socket) -> None:
        request_of(sock)
        sock.sendall(before)
        deadline = time.monotonic() + DEADLINE_S
        try:
            while time.monotonic() < deadline:
                sock.sendall(drip)
                time.sleep(0.02)
        except (ConnectionError, ssl.SSLError):
            return
        raise AssertionError("the sender never hung up")

    return handle


LONG_BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"
DRIPS = {
    "status-line": (b"", b"H"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    "informational": (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "body": (LONG_BODY, b" "),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
}


@pytest.mark.parametrize(("before", "drip"), DRIPS.values(), ids=DRIPS)
def test_sender_gives_up_on_a_server_that_drips(before: bytes, drip: bytes) -> None:
    """The time is that of the whole send: a byte now and then does not extend it."""
    with pytest.raises(Retryable, match=r" gave no answer in 0\.2 s$"):
        sent_to(dripping(before, drip), timeout_s=0.2)


def test_sender_believes_a_refusal_that_drips() -> None:
    """A status is a status; its body gets no more than the time that is left."""
    slow = b"HTTP/1.1 410 Gone\r\nContent-Length: 99999\r\n\r\n"

    with pytest.raises(Permanent, match=r"answered 410$"):
        sent_to(dripping(slow, b" "), timeout_s=0.2)


def test_sender_gives_up_on_a_server_that_is_silent() -> None:
    """A server that accepts and says nothing costs the time-out and no more."""

    def handle(sock: socket.socket) -> None:
        request_of(sock)
        assert sock.recv(1) == b""

    with pytest.raises(Retryable, match=r"gave no answer in 0\.1 s"):
        sent_to(handle, timeout_s=0.1)


def flooding(head: bytes, unit: bytes) -> tuple[Handler, list[int]]:
    """Return a handler that sends a body without end, and how many bytes of it went out."""
    counts = [0]

    def handle(sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        request_of(sock)
        try:
            sock.sendall(head)
            while counts[0] < 2**26:
                sock.sendall(unit)
                counts[0] += len(unit)
        except ConnectionError:
            return

    return handle, counts


@pytest.mark.parametrize("status", ["200 OK", "500 No"])
def test_sender_reads_no_answer_without_end(status: str) -> None:
    """Of a body over the limit the rest is left unread, whatever the status."""
    handler, counts = flooding(
        f"HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n".encode(),
        b"10000\r\n" + b" " * 65536 + b"\r\n",
    )

    if status == "200 OK":
        assert sent_to(handler) == "HTTP 200 with a body over 65536 bytes"
    else:
        with pytest.raises(Retryable, match=r"answered 500$"):
            sent_to(handler)
    assert counts[0] < 2**26


@pytest.mark.parametrize("spare", [0, 1])
def test_sender_reads_an_answer_up_to_the_limit(spare: int) -> None:
    """65536 bytes are an answer, and one more is too long even for an acknowledgement."""
    body = ACK + b" " * (65536 - len(ACK) + spare)

    result = sent_to(answering(answer("200 OK", body)))

    assert result is True if spare == 0 else result == "HTTP 200 with a body over 65536 bytes"


def test_sender_uses_a_connection_again() -> None:
    """Sends share a connection while the receiver keeps it open."""

    def handle(sock: socket.socket) -> None:
        for status in ("200 OK", "409 Conflict", "200 OK"):
            request_of(sock)
            sock.sendall(answer(status, ACK))

    with server(handle) as url, HttpSender(url) as send:
        assert send(EVENT) is True
        with pytest.raises(Permanent):
            send(EVENT)
        assert send(EVENT) is True


def test_sender_closes_its_connections() -> None:
    """Leaving the `with` block hangs up, though the sender itself is still there."""

    def handle(sock: socket.socket) -> None:
        request_of(sock)
        sock.sendall(answer("200 OK", ACK))
        assert sock.recv(1) == b""

    with server(handle) as url:
        send = HttpSender(url)
        with send as entered:
            assert entered is send
            assert send(EVENT) is True


def test_sender_opens_a_new_connection_for_one_that_was_closed() -> None:
    """A receiver that hung up in between is connected to again."""
    closed = threading.Event()

    def handle(sock: socket.socket) -> None:
        request_of(sock)
        sock.sendall(answer("200 OK", ACK))
        sock.close()
        closed.set()

    with server(handle, answering(answer("200 OK", ACK))) as url, HttpSender(url) as send:
        assert send(EVENT) is True
        assert closed.wait(DEADLINE_S)
        assert send(EVENT) is True


def test_sender_uses_no_connection_again_after_a_time_out() -> None:
    """A late answer is never taken for the next event's."""

    def late(sock: socket.socket) -> None:
        request_of(sock)
        assert sock.recv(1) == b""

    with (
        server(late, answering(answer("200 OK", b"second"))) as url,
        HttpSender(url, timeout_s=0.2) as send,
    ):
        with pytest.raises(Retryable, match="no answer"):
            send(EVENT)
        assert send({"id": "event-2", "qty": 1}) == "HTTP 200 with 'second'"


def test_sender_serves_many_threads_at_once() -> None:
    """Each thread has its own request in hand; none waits for another's answer."""
    count = 8
    together = threading.Barrier(count, timeout=DEADLINE_S)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            together.wait()
            key = self.headers["Idempotency-Key"]
            self.wfile.write(
                answer("200 OK", b'{"accepted": true}' if key[-1] in "02468" else b"0")
            )

        def log_message(self, *_arguments: object) -> None:
            pass

    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as receiver,
        ThreadPoolExecutor(count) as pool,
    ):
        serving = threading.Thread(target=receiver.serve_forever, args=(0.01,))
        serving.start()
        with HttpSender(f"http://127.0.0.1:{receiver.server_port}/") as send:
            events: list[Any] = [{"id": f"event-{number}", "qty": 1} for number in range(count)]
            results = list(pool.map(send, events))
        receiver.shutdown()
        serving.join()

    assert [result is True for result in results] == [True, False] * (count // 2)


def test_sender_uses_no_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is configured for browsers does not decide where events go."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert sent_to(answering(answer("200 OK", ACK))) is True


def test_sender_authenticates_and_keeps_the_password_to_itself() -> None:
    """User and password go out as Basic authentication; no message and no repr shows them."""
    heard: list[bytes] = []

    def handle(sock: socket.socket) -> None:
        heard.append(request_of(sock))
        sock.sendall(answer("403 No", b""))

    with server(handle) as url:
        whole = url.replace("http://", "http://us%40er:s%3Acret@") + "hook?token=s3cret"
        with HttpSender(whole) as send:
            with pytest.raises(Permanent) as caught:
                send(EVENT)
            shown = f"{caught.value!r} {send!r}"

    assert b"Authorization: Basic dXNAZXI6czpjcmV0\r\n" in heard[0]
    assert b"POST /hook?token=s3cret HTTP/1.1\r\n" in heard[0]
    assert f"{url}hook answered 403" in shown
    assert not [secret for secret in ("cret", "us%40er", "us@er") if secret in shown]


def test_sender_authenticates_with_a_user_alone() -> None:
    """A user without a password is sent with an empty one."""
    heard: list[bytes] = []

    def handle(sock: socket.socket) -> None:
        heard.append(request_of(sock))
        sock.sendall(answer("200 OK", ACK))

    with server(handle) as url, HttpSender(url.replace("http://", "http://user@")) as send:
        assert send(EVENT) is True
    assert b"Authorization: Basic dXNlcjo=\r\n" in heard[0]


def over_tls(pem: Path, handler: Handler) -> Handler:
    """Return a handler that speaks TLS first."""

    def handle(sock: socket.socket) -> None:
        with tls.server_context(pem).wrap_socket(sock, server_side=True) as secure:
            handler(secure)

    return handle


def test_sender_speaks_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """https works with a certificate that the system trusts, and under the same deadline."""
    pem = tls.write(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    handlers = (
        over_tls(pem, answering(answer("200 OK", ACK, "Connection: close"))),
        over_tls(pem, dripping(b"", b"H")),
    )

    with server(*handlers) as url:
        secure = url.replace("http", "https")
        with HttpSender(secure) as send:
            assert send(EVENT) is True
        with (
            HttpSender(secure, timeout_s=0.3) as send,
            pytest.raises(Retryable, match=r"no answer in 0\.3 s"),
        ):
            send(EVENT)


def test_sender_trusts_no_unknown_certificate(tmp_path: Path) -> None:
    """A certificate that nobody vouches for gets no event; the message says why."""

    def refused(sock: socket.socket) -> None:
        with (
            pytest.raises(ssl.SSLError),
            tls.server_context(tls.write(tmp_path)).wrap_socket(sock, server_side=True) as secure,
        ):
            secure.recv(1)

    with (
        server(refused) as url,
        HttpSender(url.replace("http", "https")) as send,
        pytest.raises(
            Retryable, match=r"failed: its certificate is not trusted: self-signed certificate$"
        ),
    ):
        send(EVENT)


def test_sender_raises_retryable_for_a_peer_without_tls() -> None:
    """https to a server that speaks no TLS fails as a connection does."""

    def handle(sock: socket.socket) -> None:
        sock.recv(1)
        sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with (
        server(handle) as url,
        HttpSender(url.replace("http", "https")) as send,
        pytest.raises(Retryable, match=r"^https://.* failed: TLS failed: [a-z ]+$"),
    ):
        send(EVENT)


def test_sender_bounds_the_tls_handshake() -> None:
    """A peer that does not answer the handshake costs the time-out and no more."""

    def handle(sock: socket.socket) -> None:
        while sock.recv(65536):
            pass

    with (
        server(handle) as url,
        HttpSender(url.replace("http", "https"), timeout_s=0.2) as send,
        pytest.raises(Retryable, match=r"gave no answer in 0\.2 s"),
    ):
        send(EVENT)


@pytest.mark.parametrize(
    "event",
    [
        *mappings(EVENT),
        *within(EVENT, "id", IDENTIFIERS),
        *within(EVENT, "qty", integers(1, 1000)),
    ],
)
def test_sender_refuses_an_event(event: Any) -> None:
    """Input of another type or range is a ValueError before anything is sent."""
    with HttpSender("http://127.0.0.1:1/") as send, pytest.raises(ValueError, match="must be"):
        send(event)


URLS = [
    "",
    "127.0.0.1:80",
    "//host/",
    "ftp://host/",
    "file:///etc/passwd",
    "http://",
    "http:///path",
    "http://:80/",
    "http://user@/",
    "http://host:0/",
    "http://host:65536/",
    "http://host:x/",
    "http://[::1/",
    "http://[bad]/",
    "http://host/#fragment",
    "http://host/#",
    "http://ho st/",
    " http://host/",
    "http://host/\n",
    "http://ho\tst/",
    "http://h\u00f6st/",
    "http://host/\x7f",
    b"http://host/",
    None,
]


@pytest.mark.parametrize("url", URLS)
def test_sender_refuses_a_url(url: Any) -> None:
    """What is no URL of a host is a ValueError at once, which does not quote it."""
    with pytest.raises(
        ValueError, match=r"^url must be a str like https://host:port/path"
    ) as caught:
        HttpSender(url)
    assert "passwd" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://host",
        "HTTP://HOST:80/",
        "https://host:65535/a?b",
        "http://[::1]:1/",
        "http://u:p@host?q",
    ],
)
def test_sender_takes_a_url(url: str) -> None:
    """Hosts, ports from 1 to 65535, users and queries are parts of a URL."""
    HttpSender(url).close()


@pytest.mark.parametrize(
    "timeout_s", [0, -1, 0.0, 86_401, float("inf"), float("nan"), True, "1", None]
)
def test_sender_refuses_a_time_out(timeout_s: Any) -> None:
    """A time that is none, or without end, is a ValueError."""
    with pytest.raises(ValueError, match="timeout_s must be"):
        HttpSender("http://host/", timeout_s=timeout_s)


@pytest.mark.parametrize("timeout_s", [5e-324, 86_400])
def test_sender_takes_a_time_out(timeout_s: float) -> None:
    """Any time above nothing and up to a day will do."""
    HttpSender("http://host/", timeout_s=timeout_s).close()


def test_sender_refuses_to_run_in_a_forked_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child would share its parent's connections, and read its parent's answers."""
    with HttpSender("http://127.0.0.1:1/") as send:
        monkeypatch.setattr(os, "getpid", lambda: -1)

        with pytest.raises(RuntimeError, match="made before a fork"):
            send(EVENT)
