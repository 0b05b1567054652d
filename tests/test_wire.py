"""wire.parse: JSON that every reader reads alike, and nothing else."""

from typing import Any

import pytest

from lease import wire

READ = {
    b'{"id": "a", "qty": 1}': {"id": "a", "qty": 1},
    b" [1, -2, 3.5, true, false, null, {}] ": [1, -2, 3.5, True, False, None, {}],
    '"\u00e9"'.encode(): "\u00e9",
    b'"\\ud83d\\ude00"': "\U0001f600",
    b'{"a": {"x": 1}, "b": {"x": 1}}': {"a": {"x": 1}, "b": {"x": 1}},
    b"9" * 32: 10**32 - 1,
    b"-" + b"9" * 31: -(10**31) + 1,
}


@pytest.mark.parametrize(("text", "value"), READ.items())
def test_parse_reads(text: bytes, value: object) -> None:
    """Whatever JSON holds is read as Python's own values."""
    assert wire.parse(text) == value


def test_parse_keeps_integers_and_floats_apart() -> None:
    """1.0 is no integer, so that a quantity has one spelling."""
    values: Any = wire.parse(b"[1, 1.0, 1e2]")

    assert [type(value) for value in values] == [int, float, float]


REFUSED = {
    b"": "not JSON",
    b" ": "not JSON",
    b"{": "not JSON",
    b"{'a': 1}": "not JSON",
    b'{"a": 1,}': "not JSON",
    b'{"a": 01}': "not JSON",
    b'"\n"': "not JSON",
    b"1 2": "not JSON",
    b"\xef\xbb\xbf1": "not JSON",
    b"\xff": "not UTF-8 at byte 0",
    b'"\xed\xa0\x80"': "not UTF-8 at byte 1",
    b'"\xc0\xaf"': "not UTF-8 at byte 1",
    b'{"a": 1, "a": 1}': "a key twice",
    b'{"a": 1, "\\u0061": 2}': "a key twice",
    b'[{"x": {"a": 1, "a": 1}}]': "a key twice",
    b"NaN": "NaN is no JSON number",
    b"[Infinity]": "Infinity is no JSON number",
    b"-Infinity": "-Infinity is no JSON number",
    b"[1e999]": "a number that is not finite",
    b"9" * 33: "a number of 33 digits",
    b"9" * 100_000: "a number of 100000 digits",
    b"[" * 100_000: "nested too deeply",
    b'{"a":' * 100_000: "nested too deeply",
}


@pytest.mark.parametrize(("text", "says"), REFUSED.items(), ids=range(len(REFUSED)))
def test_parse_refuses(text: bytes, says: str) -> None:
    """Anything else is a ValueError of one line, which quotes none of it."""
    with pytest.raises(ValueError, match=says) as caught:
        wire.parse(text)
    assert type(caught.value) is ValueError
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 100
