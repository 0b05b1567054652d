"""The transient queue that makes dispatch fast, and may lose, repeat or reorder all it holds.

Two dialects of RESP: Spedo's `QPUSH` and `QPOP`, and the lists of Redis and Valkey. Nothing here
is needed for correctness, and only `connect` needs the package redis.
"""

import re
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from lease.checks import integer, seconds
from lease.errors import AcceleratorError

DEFAULT_TIMEOUT_S = 3.0
MAX_POP = 10_000

SPEDO_PORT = 6380

_PORTS = {"spedo": SPEDO_PORT, "redis": 6379, "valkey": 6379}
_SOCKETS = {"redis+unix": "redis", "valkey+unix": "valkey"}
_KEY = re.compile(r"[A-Za-z0-9._:-]{1,200}")


class Pushable(Protocol):
    """What takes items; each failure is an `AcceleratorError`."""

    def push(self, payload: bytes) -> int:
        """Append one item; return the queue's length, which is the acknowledgement."""


class Accelerator(Pushable, Protocol):
    """What the outbox asks of a transient queue; each failure is an `AcceleratorError`."""

    @property
    def name(self) -> str:
        """Which server it is, for messages."""

    def ping(self) -> None:
        """Make sure that the server answers and lets this client in."""

    def pop(self, count: int) -> list[bytes]:
        """Remove and return at most `count` items; asked once, never again on a failure."""

    def close(self) -> None:
        """Let go of the server."""


class Address(NamedTuple):
    """Where a server is and how it talks; `path` of a Unix socket in place of host and port."""

    dialect: str
    host: str
    port: int
    path: str
    database: int
    username: str | None
    password: str | None

    @property
    def name(self) -> str:
        """Return the server's name for messages, without its credentials."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.dialect} server {self.path or f'{host}:{self.port}'}"


def address(url: str, *, username: str | None = None, password: str | None = None) -> Address:
    """Read the URL of a server.

    Args:
        url: `spedo://`, `redis://` or `valkey://` with host, port (6380 for Spedo, else 6379)
            and, other than for Spedo, a database number; or `redis+unix://` or
            `valkey+unix://` with the path of a socket.
        username, password: credentials, in place of those in the URL.

    Raises:
        ValueError: the URL is none of these.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"the URL of the server is unusable: {error}") from None
    dialect = _SOCKETS.get(parts.scheme, parts.scheme)
    by_path = parts.scheme in _SOCKETS
    database = re.fullmatch(r"/?(\d{0,4})", parts.path, re.ASCII)
    if (
        dialect not in _PORTS
        or parts.query
        or parts.fragment
        or port == 0
        or bool(parts.hostname) == by_path
        or (by_path and len(parts.path) < len("/x"))
        or (not by_path and database is None)
        or (dialect == "spedo" and parts.path not in ("", "/"))
    ):
        raise ValueError(
            "the URL of the server must be spedo://HOST:PORT, redis://HOST:PORT/DATABASE, "
            "valkey://HOST:PORT/DATABASE, redis+unix://PATH or valkey+unix://PATH"
        )
    return Address(
        dialect=dialect,
        host=parts.hostname or "",
        port=port or _PORTS[dialect],
        path=unquote(parts.path) if by_path else "",
        database=int(database[1] or 0) if database and not by_path else 0,
        username=username or (unquote(parts.username) if parts.username else None),
        password=password or (unquote(parts.password) if parts.password else None),
    )


def connect(
    url: str | Address,
    *,
    key: str | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    priority: int = 0,
    family: str = "outbox",
) -> Accelerator:
    """Return a client of a server; it connects when it is first used.

    Args:
        url: the server's URL, or what `address` made of it. A user is sent only with a password.
        key: name of the queue, which the dispatcher and the receivers share. None makes a new
            one that nobody else has; it is the client's `key`.
        timeout_s: longest wait to connect, and for each answer, in seconds up to a day.
        priority: Spedo's priority of every item, from 0.
        family: Spedo's family of every item.

    Raises:
        ValueError: an argument is unusable.
        AcceleratorError: the package redis is not installed.
    """
    target = url if isinstance(url, Address) else address(url)
    key = f"lease:outbox:{uuid4().hex}" if key is None else _word("key", key)
    seconds("timeout_s", timeout_s)
    integer("priority", priority, 0, 2**31 - 1)
    _word("family", family)
    try:
        # The package redis is an extra; the rest of the outbox works without it.
        from lease.outbox._resp import Lists, Spedo
    except ModuleNotFoundError as error:
        raise AcceleratorError(
            f"{target.name}: the Python package {error.name} is missing; install lease-queue[redis]"
        ) from error
    if target.dialect == "spedo":
        return Spedo(target, key, timeout_s, priority, family)
    return Lists(target, key, timeout_s)


def _word(name: str, value: object) -> str:
    if type(value) is str and _KEY.fullmatch(value):
        return value
    raise ValueError(f"{name} must be a str of 1-200 ASCII letters, digits, '.', '_', ':' or '-'")
