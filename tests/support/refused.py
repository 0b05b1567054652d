"""Values just outside of what the checks accept, for tables of refusals."""

from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from lease import Limits
from tests.support.queue import FACES

Cases = list[Any]


class Int(int):
    """An int subclass, which may lie about its value."""


class Float(float):
    """A float subclass."""


class Str(str):
    """A str subclass, which may lie about its content."""

    __slots__ = ()


class Dict(dict[Any, Any]):
    """A dict subclass, which may answer differently each time."""


class One(IntEnum):
    """An enumeration whose member equals 1."""

    ONE = 1


class Outcome(StrEnum):
    """An enumeration whose member equals a valid outcome."""

    OK = "ok"


class BadRepr:
    """An object that cannot be described by itself."""

    def __repr__(self) -> str:
        """Fail, as a half-built object does."""
        raise RuntimeError("no description")


def integers(low: int, high: int) -> Cases:
    """Return what an exact int from `low` to `high` is not."""
    return [
        pytest.param(low - 1, id="below"),
        pytest.param(high + 1, id="above"),
        pytest.param(-(10**40), id="huge-negative"),
        pytest.param(10**40, id="huge"),
        pytest.param(True, id="bool"),
        pytest.param(Int(low), id="int-subclass"),
        pytest.param(One.ONE, id="enum"),
        pytest.param(float(low), id="float"),
        pytest.param(float("nan"), id="nan"),
        pytest.param(float("inf"), id="inf"),
        pytest.param(str(low), id="str"),
        pytest.param(None, id="none"),
        pytest.param(BadRepr(), id="bad-repr"),
    ]


#: A place in the order of intake is any integer that SQLite holds, or None for before the first.
SEQS = [case for case in integers(-(2**63), 2**63 - 1) if case.id != "none"]

IDENTIFIERS = [
    pytest.param("", id="empty"),
    pytest.param("a" * 65, id="65-long"),
    pytest.param("job-1\n", id="trailing-newline"),
    pytest.param("\njob-1", id="leading-newline"),
    pytest.param("job 1", id="space"),
    pytest.param("job.1", id="dot"),
    pytest.param("job/1", id="slash"),
    pytest.param("job\x001", id="nul"),
    pytest.param("job'1", id="quote"),
    pytest.param("\u0661", id="arabic-digit"),
    pytest.param("\uff4a\uff4f\uff42", id="fullwidth-letters"),
    pytest.param("\u00e9t\u00e9", id="accent"),
    pytest.param("\u017f", id="long-s"),
    pytest.param("\u212a", id="kelvin-sign"),
    pytest.param("\u2010", id="unicode-hyphen"),
    pytest.param("\ud800", id="lone-surrogate"),
    pytest.param(b"job-1", id="bytes"),
    pytest.param(Str("job-1"), id="str-subclass"),
    pytest.param(1, id="int"),
    pytest.param(None, id="none"),
    pytest.param(["job-1"], id="list"),
    pytest.param(BadRepr(), id="bad-repr"),
]

#: The shortest, the longest, and every character that an identifier may hold.
GOOD_IDENTIFIERS = [
    pytest.param("a", id="1-long"),
    pytest.param("Z" * 64, id="64-long"),
    pytest.param("abcdefghijklmnopqrstuvwxyz-0123456789_", id="lower-digits"),
    pytest.param("ABCDEFGHIJKLMNOPQRSTUVWXYZ", id="upper"),
    pytest.param("-", id="hyphen"),
    pytest.param("_", id="underscore"),
]

FRACTIONS = [
    pytest.param(-1, id="-1"),
    pytest.param(2, id="2"),
    pytest.param(-5e-324, id="just-below-0"),
    pytest.param(1.0000000000000002, id="just-above-1"),
    pytest.param(float("nan"), id="nan"),
    pytest.param(float("inf"), id="inf"),
    pytest.param(float("-inf"), id="-inf"),
    pytest.param(10**400, id="huge"),
    pytest.param(True, id="true"),
    pytest.param(False, id="false"),
    pytest.param(Int(1), id="int-subclass"),
    pytest.param(Float(0.5), id="float-subclass"),
    pytest.param(One.ONE, id="enum"),
    pytest.param("0.5", id="str"),
    pytest.param(0.5 + 0j, id="complex"),
    pytest.param(None, id="none"),
    pytest.param(BadRepr(), id="bad-repr"),
]


def instants(limits: Limits) -> Cases:
    """Return what an instant within the limits is not."""
    return integers(0, limits.max_now_ms)


def mappings(good: dict[str, Any]) -> Cases:
    """Return what a dict of just the keys of `good` is not; every value is a good one."""
    first, *others = good
    without_first = {key: good[key] for key in others}
    return [
        pytest.param({}, id="empty"),
        *(
            pytest.param({key: good[key] for key in good if key != missing}, id=f"no-{missing}")
            for missing in good
        ),
        pytest.param(good | {"extra": 1}, id="extra-key"),
        pytest.param(good | {1: 1}, id="int-key"),
        pytest.param({Str(first): good[first]} | without_first, id="str-subclass-key"),
        pytest.param({first.upper(): good[first]} | without_first, id="upper-case-key"),
        pytest.param(Dict(good), id="dict-subclass"),
        pytest.param(list(good.items()), id="list"),
        pytest.param(tuple(good), id="tuple"),
        pytest.param(None, id="none"),
        pytest.param("event", id="str"),
        pytest.param(BadRepr(), id="bad-repr"),
    ]


def within(good: dict[str, Any], key: str, values: Cases) -> Cases:
    """Return a good dict once for each unusable value under one of its keys."""
    return [pytest.param(good | {key: case.values[0]}, id=f"{key}-{case.id}") for case in values]


def tickets(good: dict[str, Any], limits: Limits) -> Cases:
    """Return what a claim's ticket is not; all but one field are those of `good`."""
    return [
        *mappings(good),
        *within(good, "id", IDENTIFIERS),
        *within(good, "qty", integers(1, 1000)),
        *within(good, "owner", IDENTIFIERS),
        *within(good, "token", integers(1, 10**15)),
        *within(good, "attempt", integers(1, limits.max_attempts)),
        *within(good, "lease_until", integers(1, 10**15)),
    ]


def table(**arguments: Cases) -> Cases:
    """Return a case of (argument, value) for each argument's unusable values."""
    return [
        pytest.param(argument, *case.values, id=f"{argument}-{case.id}")
        for argument, cases in arguments.items()
        for case in cases
    ]


def for_each_face(build: Callable[[Limits], Cases]) -> Cases:
    """Return the cases that `build` makes of each face's limits, with the face in front."""
    return [
        pytest.param(face, *case.values, id=f"{name}-{case.id}")
        for name, face in FACES.items()
        for case in build(face.limits)
    ]
