"""Network streams that hold one deadline a request, over however many reads and writes.

The client library's time-outs are for each read or write on its own: a server that drips a
byte a second would never meet one. And it takes whatever comes after an answer, unasked, for
that to the next request.
"""

import re
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any

import httpcore
from httpcore import SOCKET_OPTION, ConnectError, ConnectTimeout, ReadTimeout, WriteTimeout

# What is longer than this is not looked at, and its connection not used again.
_MAX_HEARD = 64 * 1024
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})[ \t]*\r\n", re.IGNORECASE)
_LAST_CHUNK = b"0\r\n\r\n"


class Deadline(threading.local):
    """The end of the request in hand, for each thread its own: a thread makes one at a time."""

    _end_s = 0.0

    def start(self, seconds: float) -> None:
        """Let the request take so many seconds from now."""
        self._end_s = time.monotonic() + seconds

    def left(self, kind: type[httpcore.TimeoutException]) -> float:
        """Return the seconds that are left, above 0, or raise an error of that kind."""
        seconds = self._end_s - time.monotonic()
        if seconds <= 0:
            raise kind("the deadline has passed")
        return seconds


class DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections within the deadline. A name is looked up in the system's own time."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002  (the deadline stands in for it)
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that answers; each has its share of the time left."""
        failure: Exception = ConnectError("the host has no address")
        addresses = _addresses(host, port)
        for tried, address in enumerate(addresses):
            share_s = self._deadline.left(ConnectTimeout) / (len(addresses) - tried)
            try:
                stream = self._inner.connect_tcp(
                    address, port, share_s, local_address, socket_options
                )
            except (ConnectError, ConnectTimeout) as error:
                failure = error
            else:
                return _DeadlineStream(stream, self._deadline)
        raise failure


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline
        self._heard = bytearray()

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002  (as above)
        data = self._inner.read(max_bytes, self._deadline.left(ReadTimeout))
        if len(self._heard) <= _MAX_HEARD:
            self._heard += data
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002  (as above)
        self._heard.clear()
        self._inner.write(buffer, self._deadline.left(WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002  (as above)
    ) -> httpcore.NetworkStream:
        left_s = self._deadline.left(ConnectTimeout)
        return _DeadlineStream(
            self._inner.start_tls(ssl_context, server_hostname, left_s), self._deadline
        )

    def get_extra_info(self, info: str) -> Any:
        """Say of an idle connection that there is something to read, and it is not used again."""
        if info == "is_readable" and not _is_one_answer(bytes(self._heard)):
            return True
        return self._inner.get_extra_info(info)


def _is_one_answer(heard: bytes) -> bool:
    """Return whether what was read ends where the answer to the last request does."""
    head, blank, body = heard.partition(b"\r\n\r\n")
    length = _LENGTH.search(head + blank)
    if length:
        return len(body) == int(length[1])
    if b"\r\n\r\nHTTP/" in heard:
        return False
    return not body or body.endswith(_LAST_CHUNK)


def _addresses(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConnectError(f"no address: {error.strerror}") from error
    except UnicodeError as error:
        raise ConnectError("no address: the host's name cannot be one") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
