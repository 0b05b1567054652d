"""The kinds of arguments that commands share; each refuses what the library would refuse."""

import os
import re
import secrets
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from lease import checks, wire
from lease.limits import CEILING, WIDE

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,3})?)(ms|s|m|h|d)")
_WHOLE = re.compile(r"-?[0-9]{1,19}")

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
        number = int(value) if _WHOLE.fullmatch(str(value)) else None
        if number is None or not low <= number <= high:
            raise click.BadParameter(f"{str(value)!r} is no number from {low} to {high}")
        return number

    return convert


def identifier(value: str) -> str:
    """Return an id, an owner or a note that the library takes."""
    try:
        return checks.identifier("it", value)
    except ValueError as error:
        raise click.BadParameter(wire.wanted("it", "id", value)) from error


def database_path(value: str) -> str:
    """Return a path that names a file."""
    if value in ("", ":memory:"):
        raise click.BadParameter(f"{value!r} names no file")
    return value


def refuse_password(context: click.Context, parameter: click.Parameter, url: str) -> str:
    """Return a URL that every user of this machine may see among the arguments of the process."""
    given = context.get_parameter_source(str(parameter.name))
    if given is ParameterSource.COMMANDLINE and "@" in url.partition("://")[2].partition("/")[0]:
        raise click.BadParameter(
            "a password among the arguments can be seen by every user of this machine; "
            f"give the URL in {parameter.envvar}"
        )
    return url


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
LIMIT = click.option(
    "--limit",
    type=whole(1, CEILING),
    metavar="N",
    default=100,
    show_default=True,
    help="Print no more than this.",
)
AFTER = click.option(
    "--after",
    "after_seq",
    type=whole(-(2**63), 2**63 - 1),
    metavar="SEQ",
    help="Begin after the one with this SEQ.",
)
ATTEMPTS = click.option(
    "--attempts",
    "max_attempts",
    type=whole(1, WIDE.max_attempts),
    metavar="N",
    default=16,
    show_default=True,
    help="How often the job may be tried.",
)
TO = click.option(
    "--to",
    "url",
    required=True,
    metavar="URL",
    envvar="LEASE_TO",
    show_envvar=True,
    callback=refuse_password,
    help="Where each job is posted; with a user and a password only from the environment.",
)
OWNER = click.option(
    "--owner", type=identifier, metavar="NAME", help="Name of this worker; by default a random one."
)
LEASE = duration_option(
    "--lease",
    "lease_ms",
    "30s",
    WIDE.max_lease_ms,
    "How long a job is this worker's; then another may take it over.",
)
TIMEOUT = duration_option(
    "--timeout",
    "timeout_ms",
    "10s",
    WIDE.max_lease_ms,
    "How long a whole request may take; shorter than the lease.",
)
BACKOFF = duration_option(
    "--backoff",
    "base_ms",
    "1s",
    WIDE.max_delay_ms,
    "Wait after a job's first failure, twice as long after each further one.",
)
BACKOFF_CAP = duration_option(
    "--backoff-cap",
    "cap_ms",
    "15m",
    WIDE.max_delay_ms,
    "Longest wait after a failure; a random share of each wait is taken.",
)
POLL = duration_option(
    "--poll",
    "poll_ms",
    "1s",
    WIDE.max_delay_ms,
    "Longest pause between two looks at an idle queue.",
)
GIVE_UP = click.option(
    "--give-up-after",
    type=whole(0, CEILING),
    metavar="N",
    default=100,
    show_default=True,
    help="Stop once so many jobs were refused for good and none was accepted since the start, as "
    "from a wrong address; 0 for never.",
)


def random_owner() -> str:
    """Return a name that no other worker has."""
    return f"worker-{os.getpid()}-{secrets.token_hex(4)}"


def check_times(lease_ms: int, timeout_ms: int, base_ms: int, cap_ms: int) -> None:
    """Refuse times that do not go with each other."""
    if timeout_ms >= lease_ms:
        raise click.UsageError(
            f"--timeout {span(timeout_ms)} does not fit into --lease {span(lease_ms)}"
        )
    if cap_ms < base_ms:
        raise click.UsageError("--backoff-cap is shorter than --backoff")
