"""serve: a real process on a real socket, clients that mean harm, signals and SIGKILL."""

import os
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from lease import UnusableFile
from lease.delivery import HttpSender
from lease.errors import Retryable
from lease.inbox import _server
from lease.inbox._server import _listen, _url
from lease.inbox.http import serve
from tests.support.http import Receiver, post, rows, speak
from tests.support.refused import integers

EVENT: Any = {"id": "event-1", "qty": 7}
BODY = b'{"id": "event-1", "qty": 7}'
HEAD = b"POST / HTTP/1.1\r\nHost: receiver\r\nContent-Type: application/json\r\n"
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


def test_serve_answers_at_the_url_it_tells(path: Path) -> None:
    """The URL is told once requests are answered; port 0 takes a free one on loopback."""
    with Receiver(path) as receiver:
        assert receiver.address[0] == "127.0.0.1"
        assert httpx.get(receiver.url + "health", trust_env=False).json() == {"ok": True}
        with HttpSender(receiver.url) as send:
            assert send(EVENT) is True
            assert send(EVENT) is True

    assert rows(path) == ([("event-1", 7, 2)], [("event-1", 7)])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_ends_well_on_a_signal(path: Path, number: int) -> None:
    """A stop is an ordinary end, with nothing to say, even with a connection still open."""
    with Receiver(path) as receiver, httpx.Client(trust_env=False) as client:
        client.request(**post(EVENT, receiver.url))

        assert receiver.stop(number) == (0, "")


def test_serve_finishes_the_request_in_hand(path: Path) -> None:
    """A request that is being accepted when the signal comes gets its answer."""
    with (
        Receiver(path, effect="wait", turn_s=20) as receiver,
        ThreadPoolExecutor() as pool,
        HttpSender(receiver.url) as send,
    ):
        sent = pool.submit(send, EVENT)
        receiver.heard()
        receiver.process.send_signal(signal.SIGTERM)
        until(lambda: refused(receiver.address))
        Path(f"{path}.go").touch()

        assert sent.result() is True
        assert receiver.ended() == (0, "")
    assert rows(path)[0] == [("event-1", 7, 1)]


def test_serve_hangs_up_on_a_half_sent_request(path: Path) -> None:
    """A client in the middle of a body does not hold up the end: nothing has to be cancelled."""
    with (
        Receiver(path, body_s=60) as receiver,
        socket.create_connection(receiver.address) as slow,
    ):
        slow.sendall(WHOLE[:-1])
        httpx.get(receiver.url + "health", trust_env=False)

        assert receiver.stop() == (0, "")
        assert slow.recv(1000) == b""
    assert rows(path) == ([], [])


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, and fail if it does not come true."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def refused(address: tuple[str, int]) -> bool:
    """Return whether nobody listens at an address."""
    with socket.socket() as sock:
        return sock.connect_ex(address) != 0


def test_serve_makes_one_effect_of_simultaneous_requests(path: Path) -> None:
    """Many threads that send one event at once get True, and there is one effect."""
    count = 24
    start = threading.Barrier(count)

    with (
        Receiver(path) as receiver,
        HttpSender(receiver.url) as send,
        ThreadPoolExecutor(count) as pool,
    ):

        def deliver(number: int) -> list[object]:
            start.wait()
            return [send(EVENT), send({"id": f"own-{number}", "qty": 1})]

        answers = list(pool.map(deliver, range(count)))

    assert answers == [[True, True]] * count
    inbox, effects = rows(path)
    assert ("event-1", 7, count) in inbox
    assert sorted(effects) == sorted([("event-1", 7), *((f"own-{n}", 1) for n in range(count))])


def test_serve_leaves_neither_row_nor_effect_when_killed_between(path: Path) -> None:
    """SIGKILL between the inbox row and the commit leaves nothing; a restart accepts it anew."""
    with Receiver(path, effect="kill") as receiver, HttpSender(receiver.url) as send:
        assert send({"id": "before", "qty": 1}) is True
        with pytest.raises(Retryable):
            send({"id": "deadly", "qty": 3})
        assert receiver.ended()[0] == -signal.SIGKILL

    with Receiver(path) as receiver, HttpSender(receiver.url) as send:
        assert rows(path) == ([("before", 1, 1)], [])
        assert send({"id": "before", "qty": 1}) is True
        assert send({"id": "deadly", "qty": 3}) is True
    assert rows(path) == ([("before", 1, 2), ("deadly", 3, 1)], [("deadly", 3)])


def test_serve_keeps_what_it_acknowledged_when_killed(path: Path) -> None:
    """SIGKILL right after an answer loses nothing: the next process knows the event."""
    with Receiver(path) as receiver, HttpSender(receiver.url) as send:
        assert send(EVENT) is True
        receiver.process.kill()
        receiver.ended()

    with Receiver(path) as receiver:
        response = httpx.request(**post(EVENT, receiver.url), trust_env=False)
    assert response.json() == {"accepted": True, "repeat": True}
    assert rows(path) == ([("event-1", 7, 2)], [("event-1", 7)])


def test_serve_says_what_failed_in_its_log_alone(path: Path) -> None:
    """An error of the effect is logged with its reason; the client is told nothing of it."""
    with Receiver(path, effect="fail") as receiver:
        response = httpx.request(**post(EVENT, receiver.url), trust_env=False)
        code, logged = receiver.stop()

    assert (response.status_code, "room" in response.text) == (500, False)
    assert (code, "RuntimeError: no room for event-1" in logged) == (0, True)


def status_of(response: bytes) -> bytes:
    """Return the status of a raw response, or nothing for none."""
    return response[9:12]


HOSTILE = {
    "no-http": ((b"hello\r\n\r\n",), b"400"),
    "tls": ((b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 100 + b"\r\n\r\n",), b"400"),
    "huge-header": ((HEAD, b"X: " + b"x" * 100_000 + b"\r\n"), b"400"),
    "many-headers": ((HEAD, b"X: y\r\n" * 20_000), b"400"),
    "no-host": ((WHOLE.replace(b"Host: receiver\r\n", b""),), b"400"),
    "length-twice": ((HEAD + b"Content-Length: 1\r\nContent-Length: 27\r\n\r\n" + BODY,), b"400"),
    "length-negative": ((HEAD + b"Content-Length: -1\r\n\r\n" + BODY,), b"400"),
    "length-hex": ((HEAD + b"Content-Length: 0x1b\r\n\r\n" + BODY,), b"400"),
    "length-huge": ((HEAD + b"Content-Length: 999999999999\r\n\r\n" + BODY,), b"413"),
    "length-endless": ((HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n" + BODY,), b"400"),
    "bad-chunk": ((HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",), b"400"),
    "long-chunks": (
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[b"1000\r\n" + b" " * 4096 + b"\r\n"] * 5),
        b"413",
    ),
    "gzip": ((HEAD + b"Transfer-Encoding: gzip\r\n\r\n" + BODY,), b"400"),
}


@pytest.fixture(scope="module")
def stout(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One receiver that outlives every hostile client, impatient with slow ones."""
    path = tmp_path_factory.mktemp("stout") / "inbox.db"
    with Receiver(path, body_s=0.3) as receiver:
        yield receiver, path
        assert receiver.stop()[0] == 0


def well(stout: tuple[Receiver, Path]) -> bool:
    """Return whether the receiver still answers, and accepted nothing of what came in."""
    receiver, path = stout
    health = httpx.get(receiver.url + "health", trust_env=False)
    return health.status_code == 200 and rows(path) == ([], [])


@pytest.mark.parametrize(("parts", "status"), HOSTILE.values(), ids=HOSTILE)
def test_serve_survives(
    stout: tuple[Receiver, Path], parts: tuple[bytes, ...], status: bytes
) -> None:
    """What is no proper request is answered with an error, changes nothing and ends."""
    assert status_of(speak(stout[0].address, *parts)) == status
    assert well(stout)


SLOW = {
    "nothing": (b"", b""),
    "part-of-a-header": (HEAD, b""),
    "part-of-a-body": (WHOLE[:-1], b"408"),
    "part-of-a-chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{", b"408"),
    "an-unread-body": (b"DELETE" + WHOLE[4:-1], b"405"),
}


@pytest.mark.parametrize(("sent", "status"), SLOW.values(), ids=SLOW)
def test_serve_gives_up_on_a_client_that_stalls(
    stout: tuple[Receiver, Path], sent: bytes, status: bytes
) -> None:
    """A request that stops arriving ends its connection in time, and holds up nobody."""
    with ThreadPoolExecutor() as pool:
        stalled = pool.submit(speak, stout[0].address, sent)

        assert well(stout)
        assert status_of(stalled.result()) == status
    assert well(stout)


def test_serve_gives_up_on_a_client_that_drips(stout: tuple[Receiver, Path]) -> None:
    """A byte now and then does not extend a header's time."""
    with socket.create_connection(stout[0].address, timeout=0.05) as sock:
        began = time.monotonic()
        ended = False
        while not ended:
            assert time.monotonic() - began < 30
            try:
                sock.sendall(b"X")
                ended = sock.recv(1) == b""
            except TimeoutError:
                pass
            except ConnectionError:
                ended = True
    assert well(stout)


def test_serve_takes_a_truncated_body_for_none(stout: tuple[Receiver, Path]) -> None:
    """A client that leaves in the middle of a body has sent nothing."""
    with socket.create_connection(stout[0].address) as sock:
        sock.sendall(WHOLE[:-1])

    assert well(stout)


def test_serve_answers_pipelined_requests_up_to_the_garbage(path: Path) -> None:
    """Requests sent ahead are answered in order; what follows them is refused by itself."""
    with Receiver(path) as receiver:
        response = speak(receiver.address, WHOLE + WHOLE + b"garbage\r\n\r\n")

    assert response.count(b"HTTP/1.1 200") == 2
    assert response.count(b"HTTP/1.1 400") == 1
    assert rows(path) == ([("event-1", 7, 2)], [("event-1", 7)])


def test_serve_reads_a_chunked_body(path: Path) -> None:
    """A body without a declared length is accepted, in whatever pieces it comes."""
    chunked = b"".join(b"%x\r\n%s\r\n" % (1, BODY[at : at + 1]) for at in range(len(BODY)))
    head = HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    with Receiver(path) as receiver:
        response = speak(receiver.address, head, chunked + b"0\r\n\r\n")

    assert status_of(response) == b"200"
    assert rows(path)[1] == [("event-1", 7)]


def test_serve_listens_without_delay_of_small_writes() -> None:
    """asyncio switches the delay off only for sockets that name their protocol."""
    with closing(_listen("127.0.0.1", 0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_serve_warns_of_other_machines(caplog: pytest.LogCaptureFixture) -> None:
    """Listening beyond loopback is logged, since there is no authentication."""
    with closing(_listen("127.0.0.1", 0)):
        assert caplog.messages == []
    with closing(_listen("0.0.0.0", 0)):
        assert caplog.messages == ["listening on 0.0.0.0, where other machines can send events"]


class Bound:
    """A socket that knows its name and nothing else."""

    def __init__(self, *name: object) -> None:
        self._name = name

    def getsockname(self) -> tuple[object, ...]:
        """Return the address it would be bound to."""
        return self._name


@pytest.mark.parametrize(
    ("name", "url"),
    [
        (("127.0.0.1", 80), "http://127.0.0.1:80/"),
        (("::1", 8000, 0, 0), "http://[::1]:8000/"),
    ],
)
def test_serve_tells_a_url_that_can_be_used(name: Any, url: str) -> None:
    """An address of IPv6 stands in brackets."""
    bound: Any = Bound(*name)

    assert _url(bound) == url


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


def test_serve_returns_after_a_signal_and_gives_the_handlers_back(path: Path) -> None:
    """Called from a program, it ends without ending the program."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    port = free_port()

    def stop() -> None:
        until(lambda: not refused(("127.0.0.1", port)))
        os.kill(os.getpid(), signal.SIGTERM)

    stopper = threading.Thread(target=stop)
    stopper.start()
    serve(path, port=port)
    stopper.join()

    assert before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


def test_serve_refuses_more_connections_than_it_can_hold(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit the answer is 503, so that a flood costs no file descriptors."""
    monkeypatch.setattr(_server, "_MAX_CONNECTIONS", 1)
    statuses: list[int] = []
    threads: list[threading.Thread] = []

    def flood(url: str) -> None:
        statuses.append(httpx.get(f"{url}health", trust_env=False).status_code)
        os.kill(os.getpid(), signal.SIGTERM)

    def start(url: str) -> None:
        threads.append(threading.Thread(target=flood, args=(url,)))
        threads[0].start()

    serve(path, on_ready=start)
    threads[0].join()

    assert statuses == [503]


def test_serve_takes_its_port_again_at_once(path: Path) -> None:
    """A restart does not wait for the connections that the last process closed."""
    port = free_port()
    with httpx.Client(trust_env=False) as client:
        for _ in range(2):
            with Receiver(path, port=port) as receiver:
                client.request(**post(EVENT, receiver.url))

                assert receiver.stop() == (0, "")


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_serve_ends_if_it_cannot_tell_its_url(path: Path, kind: type[BaseException]) -> None:
    """An error of on_ready stops the server in good order and comes out as it is."""
    error = kind("no terminal")
    urls: list[str] = []

    def tell(url: str) -> None:
        urls.append(url)
        raise error

    with pytest.raises(kind) as caught:
        serve(path, on_ready=tell)
    assert caught.value is error
    with HttpSender(urls[0]) as send, pytest.raises(Retryable, match="refused"):
        send(EVENT)


def test_serve_runs_in_another_thread(path: Path) -> None:
    """Outside the main thread it serves as well, and touches no signal handler."""

    def tell(_url: str) -> None:
        raise StopIteration

    with ThreadPoolExecutor() as pool:
        ended = pool.submit(serve, path, on_ready=tell)

        assert isinstance(ended.exception(), StopIteration)


def test_serve_explains_a_port_in_use(path: Path) -> None:
    """A port that somebody listens on is one clear error, and no inbox is left half made."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            OSError, match=f"cannot listen on 127.0.0.1 port {port}: Address already in use; choose"
        ):
            serve(path, port=port)


def test_serve_makes_no_file_where_it_cannot_listen(path: Path) -> None:
    """An address that is taken leaves nothing behind."""
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="listen"):
        serve(path, port=taken.getsockname()[1])

    assert list(path.parent.iterdir()) == []


def test_serve_bounds_the_body_of_an_outbox_s_event(path: Path) -> None:
    """Just as many bytes as it is told, and no more."""
    body = b'{"id":"e","event_type":"t","payload":1}'
    for longest, status in ((len(body), 200), (len(body) - 1, 413)):
        with (
            Receiver(path, max_event_body=longest) as receiver,
            httpx.Client(base_url=receiver.url, trust_env=False) as client,
        ):
            assert client.request(**post(body, "events")).status_code == status


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 64 + ".invalid", "a..b"])
def test_serve_explains_a_host_that_is_none(path: Path, host: str) -> None:
    """A host without an address is one clear error."""
    with pytest.raises(OSError, match=rf"cannot listen on {host} port 0: [A-Za-z ]+; choose"):
        serve(path, host=host)


@pytest.mark.parametrize("port", integers(0, 65535))
def test_serve_refuses_a_port(path: Path, port: Any) -> None:
    """A port out of range is a ValueError before any file is made."""
    with pytest.raises(ValueError, match="port must be"):
        serve(path, port=port)
    assert not path.exists()


def test_serve_explains_an_unusable_file(path: Path) -> None:
    """A stranger's file comes out as what it is, before anything listens."""
    with closing(sqlite3.connect(path)) as con:
        con.execute("CREATE TABLE inbox (x)")
    ready: list[str] = []

    with pytest.raises(UnusableFile):
        serve(path, on_ready=ready.append)
    assert ready == []
