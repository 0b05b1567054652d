"""Read RESP2 replies to the letter, each within one time-out and within bounds.

It takes the place of redis-py's own parser, which lets negative lengths and missing line ends
pass, waits anew for every fragment, and believes any length it is told.
"""

import re
import select
import socket
import time
from typing import Any

from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import InvalidResponse, ResponseError

from lease.limits import MAX_PAYLOAD_BYTES
from lease.outbox.model import MAX_POP

Reply = bytes | int | list[Any] | ResponseError | None

_LINE_END = b"\r\n"
_MAX_LINE = 65_536
# A payload at most doubles when it is put into a JSON string; the rest is id and type.
_MAX_BULK = 2 * MAX_PAYLOAD_BYTES + 4096
_INTEGER = re.compile(rb"[+-]?[0-9]{1,18}")
_CHUNK = 65_536
_QUOTED = 60


class Reader:
    """A parser for `redis.Connection`, by the interface that it asks of one."""

    _socket: socket.socket
    _timeout_s: float

    def __init__(self, socket_read_size: int) -> None:
        del socket_read_size  # the chunk is fixed
        self._buffer = bytearray()

    def on_connect(self, connection: Any) -> None:
        """Begin to read from a connection that was just made."""
        self._socket = connection._sock  # noqa: SLF001  (redis-py's parsers do the same)
        self._timeout_s = connection.socket_timeout
        self._buffer.clear()

    def on_disconnect(self) -> None:
        """Forget what was read from a connection that is gone."""
        self._buffer.clear()

    def can_read(self, timeout: float) -> bool:
        """Tell whether there is anything to read, the end of the connection included."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(self._buffer) or bool(poll.poll(timeout * 1000))

    def read_response(self, **_options: object) -> Reply:
        """Return one reply; an error reply is returned, not raised.

        Raises:
            InvalidResponse: the reply is malformed.
            ConnectionError: redis-py's; the server closed the connection.
            TimeoutError: the reply was not there in time.
        """
        self._deadline = time.monotonic() + self._timeout_s
        try:
            return self._reply(nested=False)
        finally:
            self._socket.settimeout(self._timeout_s)

    def _reply(self, *, nested: bool) -> Reply:
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return self._bulk(self._number(line))
        if kind == b":":
            return self._number(line)
        if not nested and kind == b"+":
            return rest
        if not nested and kind == b"-":
            return ResponseError(rest.decode(errors="replace"))
        if not nested and kind == b"*":
            return self._array(self._number(line))
        raise _malformed(line)

    def _bulk(self, size: int) -> bytes | None:
        if size == -1:
            return None
        if not 0 <= size <= _MAX_BULK:
            raise InvalidResponse(f"a length of {size} bytes")
        while len(self._buffer) < size + len(_LINE_END):
            self._fill()
        value = self._take(size)
        end = self._take(len(_LINE_END))
        if end != _LINE_END:
            raise InvalidResponse(f"a value of {size} bytes goes on with {end!r}")
        return value

    def _array(self, size: int) -> list[Reply] | None:
        if size == -1:
            return None
        if not 0 <= size <= MAX_POP:
            raise InvalidResponse(f"an array of {size} items")
        return [self._reply(nested=True) for _ in range(size)]

    def _line(self) -> bytes:
        searched = 0
        while (end := self._buffer.find(_LINE_END, searched)) < 0:
            searched = max(0, len(self._buffer) - 1)
            if searched > _MAX_LINE:
                raise InvalidResponse(f"a line of more than {_MAX_LINE} bytes")
            self._fill()
        line = self._take(end)
        self._take(len(_LINE_END))
        return line

    def _number(self, line: bytes) -> int:
        if _INTEGER.fullmatch(line, 1):
            return int(line[1:])
        raise _malformed(line)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _fill(self) -> None:
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._socket.settimeout(left_s)
        chunk = self._socket.recv(_CHUNK)
        if not chunk:
            where = "in the middle of a reply" if self._buffer else "without a reply"
            raise Disconnected(f"the server closed the connection {where}")
        self._buffer += chunk


def _malformed(line: bytes) -> InvalidResponse:
    return InvalidResponse(f"{line[:_QUOTED]!r}")
