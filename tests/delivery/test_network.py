"""The deadline that all reads and writes of a request share."""

import socket
import ssl
import threading
import time
from contextlib import closing

import httpcore
import pytest

from lease.delivery import _network
from lease.delivery._network import Deadline, DeadlineBackend


def test_deadline_is_over_until_started() -> None:
    """A thread that has started no request has no time."""
    with pytest.raises(httpcore.ReadTimeout):
        Deadline().left(httpcore.ReadTimeout)


def test_deadline_counts_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left shrinks with the clock, and at its end the error asked for is raised."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    deadline = Deadline()
    deadline.start(2)

    assert deadline.left(httpcore.ReadTimeout) == 2
    now[0] = 101.5
    assert deadline.left(httpcore.ReadTimeout) == 0.5
    now[0] = 102
    with pytest.raises(httpcore.WriteTimeout, match="the deadline has passed"):
        deadline.left(httpcore.WriteTimeout)


def test_deadline_is_each_threads_own() -> None:
    """A long request of one thread does not lengthen another's."""
    deadline = Deadline()
    deadline.start(1000)
    failures: list[BaseException] = []

    def other() -> None:
        try:
            deadline.left(httpcore.ReadTimeout)
        except httpcore.ReadTimeout as error:
            failures.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()

    assert len(failures) == 1
    assert deadline.left(httpcore.ReadTimeout) > 0


def test_backend_tries_each_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host's second address is used where the first one refuses."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setattr(_network, "_addresses", lambda *_host: ["127.0.0.2", "127.0.0.1"])
        deadline = Deadline()
        deadline.start(30)

        stream = DeadlineBackend(deadline).connect_tcp("host", port)
        with closing(stream):
            assert stream.get_extra_info("server_addr") == ("127.0.0.1", port)


class Backend:
    """A backend whose every address takes all its time."""

    def __init__(self, now: list[float]) -> None:
        self.now = now
        self.tried: list[tuple[str, float]] = []

    def connect_tcp(self, host: str, _port: int, timeout: float, *_other: object) -> None:
        """Use up the time-out."""
        self.tried.append((host, timeout))
        self.now[0] += timeout
        raise httpcore.ConnectTimeout(host)


def test_backend_gives_each_address_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that swallows packets leaves time for the next, and the sum is the deadline."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(_network, "_addresses", lambda *_host: ["a", "b", "c"])
    deadline = Deadline()
    deadline.start(6)
    backend = DeadlineBackend(deadline)
    inner = Backend(now)
    monkeypatch.setattr(backend, "_inner", inner)

    with pytest.raises(httpcore.ConnectTimeout, match="c"):
        backend.connect_tcp("host", 80)
    assert inner.tried == [("a", 2.0), ("b", 2.0), ("c", 2.0)]


def test_addresses_are_each_named_once() -> None:
    """An address is tried once, in the system's order."""
    assert _network._addresses("127.0.0.1", 80) == ["127.0.0.1"]


def test_backend_reports_a_host_without_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves to nothing is a failed connection."""
    monkeypatch.setattr(_network, "_addresses", lambda *_host: [])

    with pytest.raises(httpcore.ConnectError, match="the host has no address"):
        DeadlineBackend(Deadline()).connect_tcp("host", 80)


class Stream(httpcore.NetworkStream):
    """A stream that notes the time-out of each call."""

    def __init__(self) -> None:
        self.timeouts: list[float | None] = []

    def write(self, _buffer: bytes, timeout: float | None = None) -> None:
        """Note it."""
        self.timeouts.append(timeout)

    def start_tls(
        self, _context: object, _name: str | None = None, timeout: float | None = None
    ) -> "Stream":
        """Note it, and go on as the same stream."""
        self.timeouts.append(timeout)
        return self


def test_stream_gives_each_step_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing and the TLS handshake draw on the one deadline, and so does the stream after it."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    deadline = Deadline()
    deadline.start(8)
    inner = Stream()
    stream: httpcore.NetworkStream = _network._DeadlineStream(inner, deadline)

    stream.write(b"x", 99)
    now[0] = 102
    stream = stream.start_tls(ssl.create_default_context(), "host", 99)
    now[0] = 105
    stream.write(b"x")
    now[0] = 108

    assert inner.timeouts == [8, 6, 3]
    with pytest.raises(httpcore.WriteTimeout):
        stream.write(b"x")
    with pytest.raises(httpcore.ConnectTimeout):
        stream.start_tls(ssl.create_default_context())
