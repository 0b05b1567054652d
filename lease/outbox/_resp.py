"""Clients of the servers that speak RESP2, over redis-py; imported only where one is wanted."""

from typing import Any

import redis
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import InvalidResponse, RedisError, ResponseError

from lease.checks import shown
from lease.errors import AcceleratorError
from lease.outbox._address import Address
from lease.outbox._reader import Reader

_MAX_TEXT = 200


class RespQueue:
    """One key of one server, over one connection, for one thread at a time.

    Each command is sent once. After a failure the connection is dropped, and the next command
    makes a new one; so a reply that comes late is never taken for another's.
    """

    _push: tuple[str, ...]
    _pop: str

    def __init__(self, target: Address, key: str, timeout_s: float) -> None:
        self.key = key
        self.name = target.name
        self._target = target
        self._timeout_s = timeout_s
        settings: dict[str, Any] = {
            "socket_timeout": timeout_s,
            "socket_connect_timeout": timeout_s,
            "protocol": 2,
            "parser_class": Reader,
            # redis-py's own greeting would also send CLIENT SETINFO, which not every server knows.
            "redis_connect_func": self._greet,
        }
        place: dict[str, Any] = {"host": target.host, "port": target.port}
        # A bare connection, unlike redis-py's client, repeats nothing by itself.
        kind: Any = redis.Connection
        if target.path:
            kind, place = redis.UnixDomainSocketConnection, {"path": target.path}
        self._connection = kind(**place, **settings)

    def ping(self) -> None:
        """Connect, authenticate, and make sure that PING is answered with PONG."""
        reply = self._call("PING")
        if reply != b"PONG":
            raise self._unexpected("PING", reply, "PONG")

    def push(self, payload: bytes) -> int:
        """Append one item; return the queue's length, which is the acknowledgement."""
        verb, *options = self._push
        reply = self._call(verb, self.key, payload, *options)
        if type(reply) is not int or reply < 0:
            raise self._unexpected(verb, reply, "the queue's length")
        return reply

    def pop(self, count: int) -> list[bytes]:
        """Remove and return at most `count` items; asked once, never again on a failure."""
        reply = self._call(self._pop, self.key, str(count))
        items = [] if reply is None else reply
        if type(items) is not list or any(type(item) is not bytes for item in items):
            raise self._unexpected(self._pop, reply, "an array of items")
        if len(items) > count:
            raise self._unexpected(self._pop, reply, f"at most {count} items")
        return items

    def close(self) -> None:
        """Close the connection."""
        self._connection.disconnect()

    def _call(self, verb: str, *words: str | bytes) -> Any:
        connection = self._connection
        try:
            connection.connect()
            # Something to read now is no answer to this command: a stray reply, or the end.
            if connection.can_read():
                connection.disconnect()
            connection.send_command(verb, *words)
            return connection.read_response()
        except (RedisError, OSError, UnicodeError) as error:
            connection.disconnect()
            raise AcceleratorError(f"{self.name}: {self._told(verb, error)}") from error

    def _greet(self, connection: Any) -> None:
        connection._parser.on_connect(connection)  # noqa: SLF001  (as redis-py's greeting does)
        target = self._target
        if target.password:
            credentials = (target.username, target.password)
            self._demand_ok(connection, "AUTH", *filter(None, credentials))
        if target.database:
            self._demand_ok(connection, "SELECT", str(target.database))

    def _demand_ok(self, connection: Any, verb: str, *words: str) -> None:
        connection.send_command(verb, *words)
        try:
            reply = connection.read_response()
        except ResponseError as error:
            raise Disconnected(f"{verb} was refused: {error}") from error
        if reply != b"OK":
            raise Disconnected(f"{verb} was answered with {_described(reply)}, not OK")

    def _told(self, verb: str, error: Exception) -> str:
        if isinstance(error, redis.TimeoutError):
            return f"no answer within {self._timeout_s:g} s"
        if isinstance(error, InvalidResponse):
            return f"a malformed reply, {error}; is it a server of this kind?"
        if isinstance(error, UnicodeError):
            return "the connection failed: the host's name cannot be one"
        failure = error.__context__
        if isinstance(failure, OSError) and failure.strerror:
            return f"the connection failed: {failure.strerror}"
        text = self._printable(str(error))
        return f"{verb} was refused: {text}" if isinstance(error, ResponseError) else text

    def _printable(self, text: str) -> str:
        """Return a server's words without the password, on one line, cut to a fair length."""
        for secret in filter(None, (self._target.password,)):
            text = text.replace(secret, "***")
        line = "".join(each if each.isprintable() else " " for each in text)
        return line if len(line) <= _MAX_TEXT else line[:_MAX_TEXT] + "..."

    def _unexpected(self, verb: str, reply: object, wanted: str) -> AcceleratorError:
        self._connection.disconnect()
        return AcceleratorError(
            f"{self.name}: {verb} was answered with {_described(reply)}, not {wanted}"
        )


class Spedo(RespQueue):
    """A queue of Spedo, whose items have a priority and a family."""

    _pop = "QPOP"

    def __init__(
        self, target: Address, key: str, timeout_s: float, priority: int, family: str
    ) -> None:
        super().__init__(target, key, timeout_s)
        self._push = ("QPUSH", "PRIORITY", str(priority), "FAMILY", family)


class Lists(RespQueue):
    """A list of Redis or Valkey, appended at one end and popped at the other."""

    _push = ("RPUSH",)
    _pop = "LPOP"


def _described(reply: object) -> str:
    if type(reply) is bytes:
        return repr(reply[:60])
    if type(reply) is list:
        return f"an array of {len(reply)}"
    return shown(reply)
