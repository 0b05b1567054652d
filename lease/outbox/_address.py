"""Where the server of an accelerator is, read from its URL."""

import re
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

SPEDO_PORT = 6380

_PORTS = {"spedo": SPEDO_PORT, "redis": 6379, "valkey": 6379}
_SOCKETS = {"redis+unix": "redis", "valkey+unix": "valkey"}


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
