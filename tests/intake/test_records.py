"""read_records: what each line of a file holds, and why it holds nothing."""

import io
from typing import Any

import pytest

from lease.intake import LONGEST_LINE, _records, read_records


def read(text: bytes, file_format: Any) -> list[tuple[Any, ...]]:
    return [tuple(record) for record in read_records(io.BytesIO(text), file_format)]


@pytest.mark.parametrize(
    ("text", "file_format"),
    [
        pytest.param(b'{"id": "a", "qty": 1}\n{"qty":2,"id":"b"}\n', "jsonl", id="jsonl"),
        pytest.param(b'{"id": "a", "qty": 1}\r\n{"qty":2,"id":"b"}', "jsonl", id="jsonl-crlf"),
        pytest.param(b'\xef\xbb\xbf{"id": "a", "qty": 1}\n{"qty":2,"id":"b"}', "jsonl", id="bom"),
        pytest.param(b"a,1\nb,2\n", "csv", id="csv"),
        pytest.param(b'"a","1"\r\n b , 2 \r\n', "csv", id="csv-quoted-spaced"),
        pytest.param(b"a,1\nb,002", "csv", id="csv-zeros"),
    ],
)
def test_read_records_yields_events(text: bytes, file_format: str) -> None:
    """Both formats give the same events, each with its line."""
    assert read(text, file_format) == [(1, ("a", 1), ""), (2, ("b", 2), "")]


def test_read_records_of_nothing_yields_nothing() -> None:
    """An empty file and blank lines hold no event and are no mistake."""
    assert read(b"", "jsonl") == []
    assert read(b"\xef\xbb\xbf", "jsonl") == []
    assert read(b"\n \r\n\t\n", "csv") == []


def test_read_records_counts_blank_lines() -> None:
    """The number is the line's place in the file."""
    assert read(b'\n\n{"id": "a", "qty": 1}\n', "jsonl") == [(3, ("a", 1), "")]


@pytest.mark.parametrize("header", [b"id,qty", b' "id", qty ', b"\xef\xbb\xbfid,qty", b"\nid,qty"])
def test_read_records_skips_a_csv_header(header: bytes) -> None:
    """The first line that holds anything may name the columns."""
    events = [record[1] for record in read(header + b"\na,1\n", "csv")]

    assert events == [("a", 1)]


@pytest.mark.parametrize("before", [b"id,qty\n", b"a,1\n", b"broken\n"])
def test_read_records_takes_only_the_first_line_for_a_header(before: bytes) -> None:
    """A second header is a line like any other, and a bad one."""
    (number, event, problem) = read(before + b"id,qty\n", "csv")[-1]

    assert (number, event) == (2, None)
    assert problem == "qty must be a whole number from 1 to 1000, not 'qty'"


@pytest.mark.parametrize(
    ("line", "file_format", "problem"),
    [
        (b"{", "jsonl", "the text is not JSON: Expecting property name"),
        (b"a,1", "jsonl", "the text is not JSON: Expecting value"),
        (b"[" * 4000, "jsonl", "the JSON is nested too deeply"),
        (b'{"id":"a","id":"b","qty":1}', "jsonl", "the JSON has a key twice in one object"),
        (b'{"id":"a"}', "jsonl", "event must be an object of just id and qty, not one without qty"),
        (b'["a",1]', "jsonl", "event must be an object of just id and qty, not an array"),
        (b'{"id":"a","qty":1.0}', "jsonl", "qty must be a whole number from 1 to 1000, not 1.0"),
        (b'{"id":"a","qty":true}', "jsonl", "qty must be a whole number from 1 to 1000, not true"),
        (b'{"id":"a","qty":1001}', "jsonl", "qty must be a whole number from 1 to 1000, not 1001"),
        (b"\xff", "jsonl", "the text is not UTF-8 at byte 0"),
        (b"a\xff,1", "csv", "the text is not UTF-8 at byte 1"),
        (b"a\x00,1", "csv", "id must be a string of 1-64 ASCII letters, digits, '_' or '-', "),
        (b"a,-1", "csv", "qty must be a whole number from 1 to 1000, not '-1'"),
        (b"a,\xd9\xa1", "csv", "qty must be a whole number from 1 to 1000, not '\u0661'"),
        (b"a,1_0", "csv", "qty must be a whole number from 1 to 1000, not '1_0'"),
        (b"a," + b"9" * 4090, "csv", "qty must be a whole number from 1 to 1000, not "),
        (b"a,1,x", "csv", "must be id,qty and not 3 fields"),
        (b"a", "csv", "must be id,qty and not 1 field"),
        (b'"a,1', "csv", "not CSV: unexpected end of data"),
    ],
)
def test_read_records_tells_why_a_line_is_bad(line: bytes, file_format: str, problem: str) -> None:
    """A bad line is reported where it stands and the next one is read."""
    good = b'{"id": "b", "qty": 2}' if file_format == "jsonl" else b"b,2"

    bad, after = read(line + b"\n" + good, file_format)

    assert bad[:2] == (1, None)
    assert bad[2].startswith(problem)
    assert after == (2, ("b", 2), "")


def test_read_records_takes_a_line_of_the_longest_length() -> None:
    """The bound counts the line's end."""
    event = b'{"id": "a", "qty": 1}'
    longest = event.ljust(LONGEST_LINE - 1) + b"\n"

    assert read(longest, "jsonl") == [(1, ("a", 1), "")]
    assert read(b" " + longest, "jsonl") == [(1, None, f"longer than {LONGEST_LINE} bytes")]


class OneLine:
    """A line of so many bytes, its end included, and another one; it counts what is asked for."""

    def __init__(self, size: int, after: bytes = b"b,2") -> None:
        self.left = size
        self.after = after
        self.given = 0
        self.most = 0

    def readline(self, limit: int, /) -> bytes:
        """Hand out the next piece."""
        self.most = max(self.most, limit)
        piece = b"x" * min(limit, self.left)
        self.left -= len(piece)
        if not self.left and piece:
            piece = piece[:-1] + b"\n"
        elif not piece:
            piece, self.after = self.after, b""
        self.given += len(piece)
        return piece


@pytest.fixture
def longest_skip(monkeypatch: pytest.MonkeyPatch) -> int:
    """A bound on what is skipped that is reached sooner."""
    monkeypatch.setattr(_records, "LONGEST_SKIP", 100_000)
    return 100_000


def test_read_records_skips_the_rest_of_a_long_line(longest_skip: int) -> None:
    """It is read and dropped piece by piece, up to a bound."""
    source = OneLine(longest_skip)

    assert [tuple(record) for record in read_records(source, "csv")] == [
        (1, None, f"longer than {LONGEST_LINE} bytes"),
        (2, ("b", 2), ""),
    ]
    assert source.most == LONGEST_LINE + 1


@pytest.mark.parametrize("beyond", [1, 10**12])
def test_read_records_gives_up_on_a_line_without_an_end(longest_skip: int, beyond: int) -> None:
    """A device would be read for ever."""
    source = OneLine(longest_skip + beyond)

    assert [tuple(record) for record in read_records(source, "csv")] == [
        (1, None, f"longer than {longest_skip} bytes; nothing from here on was read")
    ]
    assert source.given <= longest_skip + 2 * LONGEST_LINE
