"""The transient queue that makes dispatch fast, and may lose, repeat or reorder all it holds.

Two dialects of RESP: Spedo's `QPUSH` and `QPOP`, and the lists of Redis and Valkey. Nothing here
is needed for correctness, and only `connect` needs the package redis.
"""

import re
from typing import Protocol
from uuid import uuid4

from lease.checks import integer, seconds
from lease.errors import AcceleratorError
from lease.outbox._address import SPEDO_PORT, Address, address

__all__ = [
    "DEFAULT_TIMEOUT_S",
    "SPEDO_PORT",
    "Accelerator",
    "Address",
    "Pushable",
    "address",
    "connect",
]

DEFAULT_TIMEOUT_S = 3.0

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
