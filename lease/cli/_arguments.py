"""The kinds of arguments that commands share; each refuses what the library would refuse."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from lease import checks
from lease.limits import WIDE

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,3})?)(ms|s|m|h|d)")
_WHOLE = re.compile(r"[0-9]{1,16}")

_Command = TypeVar("_Command", bound=Callable[..., Any])


def duration(longest_ms: int) -> Callable[[str], int]:
    """Return a converter of a length of time such as `250ms`, `90s` or `1d` to milliseconds."""

    def convert(value: str) -> int:
        found = _DURATION.fullmatch(value)
        if not found:
            raise click.BadParameter(f"{value!r} is no duration such as 250ms, 90s, 15m, 12h or 1d")
        ms = round(float(found[1]) * _UNITS[found[2]])
        if not 1 <= ms <= longest_ms:
            raise click.BadParameter(f"{value} is not from 1ms to {span(longest_ms)}")
        return ms

    return convert


def whole(low: int, high: int) -> Callable[[str | int], int]:
    """Return a converter of a number in ASCII digits, within bounds."""

    def convert(value: str | int) -> int:
        number = int(value) if _WHOLE.fullmatch(str(value)) else -1
        if not low <= number <= high:
            raise click.BadParameter(f"{str(value)!r} is no number from {low} to {high}")
        return number

    return convert


def identifier(value: str) -> str:
    """Return an id, an owner or a note that the library takes."""
    try:
        return checks.identifier("it", value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def database_path(value: str) -> str:
    """Return a path that names a file."""
    if value in ("", ":memory:"):
        raise click.BadParameter(f"{value!r} names no file")
    return value


def duration_option(
    flag: str, name: str, default: str, longest_ms: int, text: str
) -> Callable[[_Command], _Command]:
    """Return an option that takes a length of time."""
    return click.option(
        flag,
        name,
        type=duration(longest_ms),
        metavar="DURATION",
        default=default,
        show_default=True,
        help=text,
    )


def span(ms: int) -> str:
    """Return a length of time in its largest unit, rounded down, as `Duration` takes it."""
    for unit in ("d", "h", "m", "s"):
        if ms >= _UNITS[unit]:
            return f"{ms // _UNITS[unit]}{unit}"
    return f"{ms}ms"


QUEUE = click.argument("path", type=database_path, metavar="QUEUE")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
TTL = duration_option(
    "--ttl",
    "ttl_ms",
    "1d",
    WIDE.max_ttl_ms,
    "Time to live; a job that is not done by then is dead.",
)
