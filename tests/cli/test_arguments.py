"""The kinds of arguments: what each takes, and what it refuses."""

from typing import Any

import click
import pytest

from lease.cli._arguments import database_path, duration, identifier, span, whole
from tests.support.refused import GOOD_IDENTIFIERS

DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1ms", 1),
        ("250ms", 250),
        ("90s", 90_000),
        ("1.5s", 1500),
        ("0.001s", 1),
        ("15m", 900_000),
        ("12h", 43_200_000),
        ("1d", DAY),
    ],
)
def test_duration_takes_a_number_and_its_unit(text: str, ms: int) -> None:
    """Each unit is converted to milliseconds, the longest included."""
    assert duration(DAY)(text) == ms


@pytest.mark.parametrize(
    "text",
    ["", "5", "s", "-1s", "+1s", "1 s", "1S", "1w", "1e3s", "\u0661s", "1s\n", "1h30m", "1.s"],
)
def test_duration_refuses_other_texts(text: str) -> None:
    """A number without a unit, above all, is refused and not guessed at."""
    with pytest.raises(click.BadParameter, match="no duration such as"):
        duration(DAY)(text)


@pytest.mark.parametrize("text", ["0s", "0.4ms", "86400001ms", "999999999999d"])
def test_duration_refuses_other_lengths(text: str) -> None:
    """Nothing, and more than the longest, is out of range."""
    with pytest.raises(click.BadParameter, match="not from 1ms to 1d"):
        duration(DAY)(text)


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("0010", 10), (5, 5)])
def test_whole_takes_ascii_digits(text: Any, number: int) -> None:
    """A default that is a number already passes as well."""
    assert whole(1, 10)(text) == number


@pytest.mark.parametrize(
    "text", ["", "0", "11", "-1", "+1", "1.0", "1_0", " 1", "\u0661", "9" * 17]
)
def test_whole_refuses(text: str) -> None:
    """Whatever else Python takes for a number is refused."""
    with pytest.raises(click.BadParameter, match="no number from 1 to 10"):
        whole(1, 10)(text)


@pytest.mark.parametrize("text", GOOD_IDENTIFIERS)
def test_identifier_takes_what_the_library_takes(text: str) -> None:
    """A name passes unchanged."""
    assert identifier(text) == text


@pytest.mark.parametrize("text", ["", "a b", "job-1\n", "x" * 65, "\udcff"])
def test_identifier_refuses(text: str) -> None:
    """The reason is the library's."""
    with pytest.raises(click.BadParameter, match="1-64 ASCII letters"):
        identifier(text)


def test_database_path_takes_any_path() -> None:
    """A path is a path, whatever it looks like."""
    assert database_path("file:a?b#c d") == "file:a?b#c d"


@pytest.mark.parametrize("text", ["", ":memory:"])
def test_database_path_refuses(text: str) -> None:
    """What names no file cannot be a queue."""
    with pytest.raises(click.BadParameter, match="names no file"):
        database_path(text)


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0ms"), (999, "999ms"), (1000, "1s"), (59_999, "59s"), (3_600_000, "1h"), (2 * DAY, "2d")],
)
def test_span_is_the_largest_unit(ms: int, text: str) -> None:
    """A length is told as it would be typed."""
    assert span(ms) == text
