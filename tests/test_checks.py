"""The checks themselves: what they return, and how they describe what they refuse."""

from collections.abc import Callable
from typing import Any

import pytest

from lease import CONTRACT, checks
from tests.support.refused import (
    FRACTIONS,
    GOOD_IDENTIFIERS,
    IDENTIFIERS,
    BadRepr,
    Dict,
    Float,
    Int,
    Str,
    integers,
    mappings,
    within,
)

EVENT = {"id": "job-1", "qty": 7}
TICKET = {"id": "a", "qty": 1, "owner": "w", "token": 2, "attempt": 3, "lease_until": 4}


@pytest.mark.parametrize("value", GOOD_IDENTIFIERS)
def test_identifier_returns_it(value: str) -> None:
    """An identifier comes back as it is."""
    assert checks.identifier("owner", value) is value


@pytest.mark.parametrize("value", IDENTIFIERS)
def test_identifier_refuses(value: object) -> None:
    """The message names the argument and the rule."""
    with pytest.raises(ValueError, match=r"^owner must be a str of 1-64 ASCII letters"):
        checks.identifier("owner", value)


def test_identifier_is_of_64_characters_and_no_other() -> None:
    """Of all of Unicode, exactly the ASCII letters, digits, `_` and `-` are in an identifier."""
    good = []
    for code in range(0x110000):
        try:
            good.append(checks.identifier("id", chr(code)))
        except ValueError:
            continue

    assert "".join(good) == "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize("value", [5, 6, 9])
def test_integer_returns_it(value: int) -> None:
    """Both ends are in the range."""
    assert checks.integer("n", value, 5, 9) == value


@pytest.mark.parametrize("value", integers(5, 9))
def test_integer_refuses(value: object) -> None:
    """The message names the argument and the range."""
    with pytest.raises(ValueError, match=r"^n must be an int from 5 to 9, not "):
        checks.integer("n", value, 5, 9)


@pytest.mark.parametrize("value", [0, 1, 0.0, -0.0, 0.5, 1.0, 5e-324])
def test_fraction_returns_it(value: float) -> None:
    """Zero and one are fractions, as int and as float."""
    assert checks.fraction("jitter", value) is value


@pytest.mark.parametrize("value", FRACTIONS)
def test_fraction_refuses(value: object) -> None:
    """The message names the argument and the range."""
    with pytest.raises(ValueError, match=r"^jitter must be an int or float from 0 to 1, not "):
        checks.fraction("jitter", value)


@pytest.mark.parametrize("value", ["ok", "retry", "permanent"])
def test_outcome_accepts(value: str) -> None:
    """There are three outcomes."""
    checks.outcome(value)


@pytest.mark.parametrize("value", ["pending", "leased", "done", "dead"])
def test_status_accepts(value: str) -> None:
    """There are four states."""
    checks.status(value)


@pytest.mark.parametrize("value", ["", "stale", "Done", Str("done"), b"done", None, 1])
def test_status_refuses(value: object) -> None:
    """Anything but the exact name of a state is refused."""
    with pytest.raises(ValueError, match=r"^status must be 'pending', 'leased', 'done' or 'dead'"):
        checks.status(value)


def test_event_returns_its_values() -> None:
    """An event is taken apart; the dict itself is not kept."""
    assert checks.event(EVENT) == ("job-1", 7)


@pytest.mark.parametrize("value", mappings(EVENT))
def test_event_refuses_another_shape(value: object) -> None:
    """Whatever is not a plain dict of just the two keys is refused as such."""
    with pytest.raises(ValueError, match=r"^event must be a dict of just id and qty, not "):
        checks.event(value)


@pytest.mark.parametrize("value", within(EVENT, "id", IDENTIFIERS))
def test_event_refuses_an_id(value: object) -> None:
    """The message says that it is the id."""
    with pytest.raises(ValueError, match=r"^id must be"):
        checks.event(value)


def test_ticket_returns_a_copy() -> None:
    """What the caller does to its dict afterwards does not reach the copy."""
    given = dict(TICKET)
    marker = checks.ticket(given, CONTRACT)
    given["token"] = 99

    assert marker == TICKET


@pytest.mark.parametrize("value", mappings(TICKET))
def test_ticket_refuses_another_shape(value: object) -> None:
    """Whatever is not a plain dict of just the six keys is refused as such."""
    with pytest.raises(
        ValueError, match=r"^ticket must be a dict of just a claim's six keys, not "
    ):
        checks.ticket(value, CONTRACT)


@pytest.mark.parametrize("key", TICKET)
def test_ticket_names_the_field_that_it_refuses(key: str) -> None:
    """The message says which field is unusable."""
    with pytest.raises(ValueError, match=rf"^ticket {key} must be"):
        checks.ticket(TICKET | {key: None}, CONTRACT)


@pytest.mark.parametrize("value", [5, 6])
def test_later_returns_the_reading(value: int) -> None:
    """A second reading may equal the first."""
    assert checks.later(5, value, CONTRACT) == value


def test_later_refuses_a_clock_that_went_back() -> None:
    """The message has both readings."""
    with pytest.raises(ValueError, match=r"^clock\(\) went backwards, from 5 to 4$"):
        checks.later(5, 4, CONTRACT)


class Deceptive(type):
    """A class whose own name cannot be had."""

    @property
    def __name__(cls) -> str:
        raise RuntimeError("no name")


class Nameless(metaclass=Deceptive):
    """An object of a class without a name."""


@pytest.mark.parametrize(
    ("value", "description"),
    [
        pytest.param("short", "'short'", id="str"),
        pytest.param("x" * 80, repr("x" * 80), id="str-of-80"),
        pytest.param("x" * 81, repr("x" * 80 + "..."), id="str-of-81"),
        pytest.param("a\nb\ud800", r"'a\nb\ud800'", id="str-of-one-line"),
        pytest.param(7, "7", id="int"),
        pytest.param(2**64 - 1, "18446744073709551615", id="int-of-64-bits"),
        pytest.param(2**64, "an int of 65 bits", id="int-of-65-bits"),
        pytest.param(-(2**64), "an int of 65 bits", id="negative-int"),
        pytest.param(10**5000, "an int of 16610 bits", id="int-beyond-the-digits-limit"),
        pytest.param(True, "True", id="bool"),
        pytest.param(float("nan"), "nan", id="nan"),
        pytest.param(None, "a NoneType", id="none"),
        pytest.param(b"secret", "a bytes", id="bytes"),
        pytest.param({"password": 1}, "a dict", id="dict"),
        pytest.param(Int(7), "a Int", id="int-subclass"),
        pytest.param(Float(0.5), "a Float", id="float-subclass"),
        pytest.param(Str("x"), "a Str", id="str-subclass"),
        pytest.param(Dict(), "a Dict", id="dict-subclass"),
        pytest.param(BadRepr(), "a BadRepr", id="bad-repr"),
    ],
)
def test_shown_describes(value: object, description: str) -> None:
    """Plain values are quoted up to a length; anything else is named by its class alone."""
    assert checks.shown(value) == description


def test_shown_calls_no_code_of_the_class() -> None:
    """Not even a class that hides its name can turn a refusal into another error."""
    assert checks.shown(Nameless()) == "a Nameless"


@pytest.mark.parametrize(
    ("value", "description"),
    [
        (["id", "qty"], "a list"),
        (Dict(EVENT), "a Dict"),
        ({}, "one without id and qty"),
        ({"id": "a"}, "one without qty"),
        ({"id": "a", "qty": 1, "token": 2}, "one with 'token'"),
        ({"id": "a", "quantity": 1}, "one without qty but with 'quantity'"),
        ({"id": "a", "qty": 1} | dict.fromkeys(range(3)), "one with 0 and 1 and 2"),
        ({"id": "a", "qty": 1} | dict.fromkeys(range(4)), "one with 0 and 1 and 2 and 1 more"),
        ({Str("id"): "a", "qty": 1}, "one without id but with a Str"),
        ({"id": "a", "qty": 1, Nameless(): 2}, "one with a Nameless"),
    ],
)
def test_unlike_names_the_keys(value: object, description: str) -> None:
    """What is missing and what is too much, by the keys' own names or their classes'."""
    assert checks.unlike(value, {"id", "qty"}) == description


@pytest.mark.parametrize("value", [1, 0.5, 1.5, 5e-324, 86_400, 86_400.0])
def test_seconds_returns_it(value: float) -> None:
    """A wait is above nothing and up to a day."""
    assert checks.seconds("timeout_s", value) is value


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        -0.0,
        86_401,
        86_400.00000000001,
        float("inf"),
        float("nan"),
        True,
        Int(1),
        Float(1.0),
        "1",
        None,
    ],
)
def test_seconds_refuses(value: object) -> None:
    """A wait that never ends, or is no plain number, is refused."""
    with pytest.raises(ValueError, match=r"^timeout_s must be an int or float above 0"):
        checks.seconds("timeout_s", value)


@pytest.mark.parametrize(
    "value",
    [
        "http://h",
        "https://h/",
        "http://127.0.0.1:8080/a?b=c",
        "http://[::1]:1/",
        "http://user:word@h:65535/x",
    ],
)
def test_url_returns_its_parts(value: str) -> None:
    """An http or https URL with a host is taken apart."""
    assert checks.url("url", value).geturl() == value


@pytest.mark.parametrize(
    "value",
    [
        "",
        "h",
        "//h/",
        "ftp://h/",
        "file:///etc/passwd",
        "http://",
        "http:///path",
        "http://:80/",
        "http://h:0/",
        "http://h:65536/",
        "http://h:x/",
        "http://[::1/",
        "http://h/#part",
        "http://h/#",
        "http://h/a b",
        "http://h/\n",
        "\thttp://h/",
        "http://h/\u00e9",
        b"http://h/",
        Str("http://h/"),
        None,
    ],
)
def test_url_refuses(value: object) -> None:
    """Anything else is refused without being quoted, for it may hold a password."""
    with pytest.raises(
        ValueError, match=r"^url must be a str like https://host:port/path"
    ) as caught:
        checks.url("url", value)
    assert "passwd" not in str(caught.value)
    assert caught.value.__cause__ is None


CHECKS: list[tuple[Callable[..., object], tuple[Any, ...]]] = [
    (checks.identifier, ("n", BadRepr())),
    (checks.integer, ("n", BadRepr(), 1, 2)),
    (checks.now, (BadRepr(), CONTRACT)),
    (checks.later, (1, BadRepr(), CONTRACT)),
    (checks.fraction, ("n", BadRepr())),
    (checks.seconds, ("n", BadRepr())),
    (checks.outcome, (BadRepr(),)),
    (checks.status, (BadRepr(),)),
    (checks.event, (BadRepr(),)),
    (checks.ticket, (BadRepr(), CONTRACT)),
]


@pytest.mark.parametrize(("check", "arguments"), CHECKS, ids=[c.__name__ for c, _ in CHECKS])
def test_check_survives_an_object_that_cannot_be_described(
    check: Callable[..., object], arguments: tuple[Any, ...]
) -> None:
    """The refusal is a ValueError of one line, whatever was passed."""
    with pytest.raises(ValueError, match=r"\A[^\n]+ not a BadRepr\Z"):
        check(*arguments)
