"""wire: JSON that every reader reads alike, and events refused in the words of JSON."""

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


EVENT = {"id": "a", "qty": 1}
RECORDED = {"id": "a", "event_type": "t", "payload": None}


def test_event_returns_its_values() -> None:
    """A parsed event is taken apart."""
    assert wire.event(EVENT) == ("a", 1)
    assert wire.recorded_event(RECORDED) == RECORDED


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "event must be an object of just id and qty, not an array"),
        (None, "event must be an object of just id and qty, not null"),
        ("a", "event must be an object of just id and qty, not 'a'"),
        ({}, "event must be an object of just id and qty, not one without id and qty"),
        ({"id": "a"}, "event must be an object of just id and qty, not one without qty"),
        (EVENT | {"x": 1}, "event must be an object of just id and qty, not one with 'x'"),
        (
            {"id": "a", "quantity": 1, "b": 2, "c": 3},
            (
                "event must be an object of just id and qty, not one without qty but with "
                "'quantity' and 'b' and 'c'"
            ),
        ),
        (
            EVENT | dict.fromkeys("pqrst", 1),
            (
                "event must be an object of just id and qty, not one with 'p' and 'q' and 'r' "
                "and 2 more"
            ),
        ),
        (
            EVENT | {"id": True},
            "id must be a string of 1-64 ASCII letters, digits, '_' or '-', not true",
        ),
        (EVENT | {"qty": False}, "qty must be a whole number from 1 to 1000, not false"),
        (EVENT | {"qty": None}, "qty must be a whole number from 1 to 1000, not null"),
        (EVENT | {"qty": {}}, "qty must be a whole number from 1 to 1000, not an object"),
        (EVENT | {"qty": 1.5}, "qty must be a whole number from 1 to 1000, not 1.5"),
        (
            EVENT | {"qty": 2**64 - 1},
            "qty must be a whole number from 1 to 1000, not 18446744073709551615",
        ),
        (
            EVENT | {"qty": -(2**64)},
            "qty must be a whole number from 1 to 1000, not a number of 20 digits",
        ),
    ],
)
def test_event_refuses_in_the_words_of_json(document: object, says: str) -> None:
    """Whoever wrote the JSON is told which key is missing or too much, or which value is wrong."""
    with pytest.raises(ValueError, match="must be") as caught:
        wire.event(document)
    assert str(caught.value) == says
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (1, "event must be an object of just id, event_type and payload, not 1"),
        (
            {"id": "a", "type": "t", "payload": 1},
            (
                "event must be an object of just id, event_type and payload, not one without "
                "event_type but with 'type'"
            ),
        ),
        (
            RECORDED | {"event_type": ["t"]},
            (
                "event_type must be a string of 1-128 ASCII letters, digits, '.', '_', ':', '/' or "
                "'-', not an array"
            ),
        ),
        (
            RECORDED | {"id": 7},
            "id must be a string of 1-64 ASCII letters, digits, '_' or '-', not 7",
        ),
    ],
)
def test_recorded_event_refuses_in_the_words_of_json(document: object, says: str) -> None:
    """Likewise of what an outbox delivers."""
    with pytest.raises(ValueError, match="must be") as caught:
        wire.recorded_event(document)
    assert str(caught.value) == says
