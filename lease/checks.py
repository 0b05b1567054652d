"""Exact-type validation; the only place that raises ValueError for input.

Subclasses are refused everywhere: a `bool` is an `int`, and a `str` or `dict` subclass may
lie about its content.
"""

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from lease.limits import CEILING, MAX_BATCH, MAX_QTY, Limits
from lease.model import RecordedEvent

if TYPE_CHECKING:
    from urllib.parse import SplitResult

T = TypeVar("T")

#: A checked ticket, the outcome of its send, and the delay before a retry.
Result = tuple[dict[str, str | int], str, int]

_PRINTABLE = re.compile(r"[!-~]+")
_SCHEMES = ("http", "https")
# A day; a wait without end is no wait that was meant.
_MAX_S = 86_400
_IDENTIFIER = re.compile(r"[A-Za-z0-9_-]{1,64}")
_EVENT_TYPE = re.compile(r"[A-Za-z0-9._:/-]{1,128}")
_EVENT_KEYS = {"id", "qty"}
_RECORDED_KEYS = {"id", "event_type", "payload"}
_TICKET_KEYS = {"id", "qty", "owner", "token", "attempt", "lease_until"}
# Beyond these a refused value is described, not quoted: characters of a str, bits of an int.
_LONG = 80
_WIDE = 64
# So many keys that do not belong are named, and the rest counted.
_MANY = 3
_OUTCOMES = ("ok", "retry", "permanent")
_JOURNAL_MODES = ("delete", "wal")
_STATUSES = ("pending", "leased", "done", "dead")
_REASONS = ("deadline", "exhausted", "permanent")
# A class's own name, past a metaclass that answers otherwise.
_NAME = type.__dict__["__name__"]


def identifier(name: str, value: object) -> str:
    """Return `value` if it is an exact str of 1-64 ASCII letters, digits, `_` and `-`."""
    if type(value) is str and _IDENTIFIER.fullmatch(value):
        return value
    raise ValueError(
        f"{name} must be a str of 1-64 ASCII letters, digits, '_' or '-', not {shown(value)}"
    )


def event_type(value: object) -> str:
    """Return `value` if it is an exact str of 1-128 ASCII letters, digits and `._:/-`."""
    if type(value) is str and _EVENT_TYPE.fullmatch(value):
        return value
    raise ValueError(
        f"event_type must be a str of 1-128 ASCII letters, digits, '.', '_', ':', '/' or '-', "
        f"not {shown(value)}"
    )


def integer(name: str, value: object, low: int, high: int) -> int:
    """Return `value` if it is an exact int from `low` to `high`."""
    if type(value) is int and low <= value <= high:
        return value
    raise ValueError(f"{name} must be an int from {low} to {high}, not {shown(value)}")


def seq(name: str, value: object) -> None:
    """Accept a place in the order of intake, which is any integer that SQLite holds, or None."""
    if value is not None:
        integer(name, value, -(2**63), 2**63 - 1)


def now(value: object, limits: Limits, name: str = "now_ms") -> int:
    """Return `value` if it is an instant within the limits."""
    return integer(name, value, 0, limits.max_now_ms)


def later(first_ms: int, second_ms: object, limits: Limits) -> int:
    """Return the clock's second reading if it is an instant no earlier than the first."""
    second = now(second_ms, limits, "clock()")
    if second >= first_ms:
        return second
    raise ValueError(f"clock() went backwards, from {first_ms} to {second}")


def fraction(name: str, value: object) -> float:
    """Return `value` if it is an exact int or float, finite, from 0 to 1."""
    if (type(value) is int or (type(value) is float and isfinite(value))) and 0 <= value <= 1:
        return value
    raise ValueError(f"{name} must be an int or float from 0 to 1, not {shown(value)}")


def seconds(name: str, value: object) -> float:
    """Return `value` if it is an exact int or float, above 0 and not above a day."""
    if (type(value) is int or type(value) is float) and 0 < value <= _MAX_S:
        return value
    raise ValueError(
        f"{name} must be an int or float above 0 and up to {_MAX_S} seconds, not {shown(value)}"
    )


def url(name: str, value: object) -> "SplitResult":
    """Return the parts of a str that is an http or https URL with a host and no fragment."""
    # Imported late: only a sender has a URL, and not every Python has loaded this by now.
    from urllib.parse import urlsplit

    # urlsplit drops the line breaks and spaces that this refuses.
    if type(value) is str and _PRINTABLE.fullmatch(value):
        # A port or an address in brackets may be one that urlsplit itself refuses.
        with suppress(ValueError):
            parts = urlsplit(value)
            if parts.scheme in _SCHEMES and parts.hostname and parts.port != 0 and "#" not in value:
                return parts
    # Not quoted: it may hold a password.
    raise ValueError(
        f"{name} must be a str like https://host:port/path, in ASCII and without a fragment"
    )


def outcome(value: object) -> None:
    """Accept the exact name of what a send came to."""
    if type(value) is not str or value not in _OUTCOMES:
        raise ValueError(f"outcome must be 'ok', 'retry' or 'permanent', not {shown(value)}")


def journal_mode(value: object) -> None:
    """Accept the exact name of a journal mode that a queue may have, or None."""
    if value is not None and (type(value) is not str or value not in _JOURNAL_MODES):
        raise ValueError(f"journal_mode must be 'delete', 'wal' or None, not {shown(value)}")


def status(value: object) -> None:
    """Accept the exact name of a job's state."""
    if type(value) is not str or value not in _STATUSES:
        raise ValueError(
            f"status must be 'pending', 'leased', 'done' or 'dead', not {shown(value)}"
        )


def event(value: object) -> tuple[str, int]:
    """Return the id and quantity of an exact dict that holds just these."""
    if not _has_keys(value, _EVENT_KEYS):
        raise ValueError(
            f"event must be a dict of just id and qty, not {unlike(value, _EVENT_KEYS)}"
        )
    return identifier("id", value["id"]), integer("qty", value["qty"], 1, MAX_QTY)


def recorded_event(value: object) -> RecordedEvent:
    """Return a copy of an exact dict of just an id, an event type and a payload.

    The payload is looked at by whoever writes it down.
    """
    if not _has_keys(value, _RECORDED_KEYS):
        raise ValueError(
            f"event must be a dict of just id, event_type and payload, "
            f"not {unlike(value, _RECORDED_KEYS)}"
        )
    return RecordedEvent(
        id=identifier("id", value["id"]),
        event_type=event_type(value["event_type"]),
        payload=value["payload"],
    )


def ticket(value: object, limits: Limits) -> dict[str, str | int]:
    """Return a private copy of a claim's ticket, every field checked."""
    if not _has_keys(value, _TICKET_KEYS):
        raise ValueError(
            f"ticket must be a dict of just a claim's six keys, not {unlike(value, _TICKET_KEYS)}"
        )
    return {
        "id": identifier("ticket id", value["id"]),
        "qty": integer("ticket qty", value["qty"], 1, MAX_QTY),
        "owner": identifier("ticket owner", value["owner"]),
        "token": integer("ticket token", value["token"], 1, CEILING),
        "attempt": integer("ticket attempt", value["attempt"], 1, limits.max_attempts),
        "lease_until": integer("ticket lease_until", value["lease_until"], 1, CEILING),
    }


def events(value: object) -> list[tuple[str, int]]:
    """Return the id and quantity of each event of a batch."""
    return _each("events", value, event)


def results(value: object, limits: Limits) -> list[Result]:
    """Return a private copy of a batch of tickets, each with its outcome and its delay."""
    return _each("results", value, lambda each: _result(each, limits))


def _result(value: object, limits: Limits) -> Result:
    if not _is_tuple_of_three(value):
        raise ValueError(
            f"result must be a tuple of ticket, outcome and delay_ms, not {shown(value)}"
        )
    held, came_to, delay_ms = value
    marker = ticket(held, limits)
    outcome(came_to)
    return marker, came_to, integer("delay_ms", delay_ms, 0, limits.max_delay_ms)


def _each(name: str, value: object, check: Callable[[object], T]) -> list[T]:
    if not _is_sequence(value):
        raise ValueError(f"{name} must be a list or tuple, not {shown(value)}")
    if len(value) > MAX_BATCH:
        raise ValueError(f"{name} must be at most {MAX_BATCH} of them, not {len(value)}")
    checked: list[T] = []
    try:
        for each in value:
            checked.append(check(each))  # noqa: PERF401  (its length names the one refused)
    except ValueError as error:
        raise ValueError(f"{name}[{len(checked)}]: {error}") from error
    return checked


def _is_tuple_of_three(value: object) -> TypeGuard[tuple[Any, Any, Any]]:
    return type(value) is tuple and len(value) == 3  # noqa: PLR2004  (the name says it)


def _is_sequence(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    return type(value) in (list, tuple)


def dead(job_id: str, found: tuple[str] | None) -> None:
    """Accept only the row of a job that is in quarantine."""
    if found is None:
        raise ValueError(f"there is no job {job_id}")
    (status,) = found
    if status != "dead":
        raise ValueError(f"job {job_id} is {status}; only a dead job can be redriven")


def shown(value: object) -> str:
    """Describe a refused value without calling any code of its class."""
    if type(value) is str:
        return repr(value if len(value) <= _LONG else value[:_LONG] + "...")
    if type(value) is int and value.bit_length() > _WIDE:
        return f"an int of {value.bit_length()} bits"
    if type(value) in (int, float, bool):
        return repr(value)
    return f"a {_NAME.__get__(type(value))}"


def unlike(value: object, keys: Collection[str], describe: Callable[[object], str] = shown) -> str:
    """Describe what is no dict of just these keys, by those that it lacks and has besides."""
    if type(value) is not dict:
        return describe(value)
    names = {key for key in value if type(key) is str}
    lacking = [key for key in sorted(keys) if key not in names]
    others = [describe(key) for key in value if type(key) is not str or key not in keys]
    if len(others) > _MANY:
        others[_MANY:] = [f"{len(others) - _MANY} more"]
    parts = [f"without {' and '.join(lacking)}"] if lacking else []
    parts += [f"with {' and '.join(others)}"] if others else []
    return f"one {' but '.join(parts)}"


def _has_keys(value: object, keys: set[str]) -> TypeGuard[dict[str, object]]:
    return type(value) is dict and all(type(key) is str for key in value) and value.keys() == keys


def identifiers(name: str, value: object) -> list[str]:
    """Return a private copy of a batch of identifiers."""
    return _each(name, value, lambda each: identifier("id", each))


def reason(value: object) -> None:
    """Accept the exact name of a reason for which a job is dead, or None."""
    if value is not None and (type(value) is not str or value not in _REASONS):
        raise ValueError(
            f"reason must be 'deadline', 'exhausted', 'permanent' or None, not {shown(value)}"
        )


def is_identifier(value: object) -> bool:
    """Tell whether `identifier` would accept a value, which somebody's own SQL has put there."""
    return type(value) is str and _IDENTIFIER.fullmatch(value) is not None
