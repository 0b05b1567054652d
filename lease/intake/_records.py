"""Read events from lines of JSON or CSV, however many, long or broken they are."""

import csv
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple, Protocol

from lease import wire

Format = Literal["jsonl", "csv"]

# An event takes about a hundred bytes; what comes beyond this is skipped and never held.
LONGEST_LINE = 4096

# What has no line's end in so many bytes, about a second's reading, has none at all: a device.
LONGEST_SKIP = 1 << 30

_DIGITS = re.compile(r"[0-9]+")
_HEADER = {"id": "id", "qty": "qty"}


class Record(NamedTuple):
    """What one line holds: an event as its id and quantity, or the problem that it has none."""

    line: int
    event: tuple[str, int] | None
    problem: str = ""


class Lines(Protocol):
    """What lines can be read from; every binary file is one."""

    def readline(self, limit: int, /) -> bytes:
        """Return the next line, or as much of it as the limit allows; nothing at the end."""


class _BadLineError(Exception):
    """The line holds no event; the message says why."""


class _EndlessLineError(Exception):
    """The line of that number has no end within bounds."""

    def __init__(self, line: int) -> None:
        super().__init__(f"longer than {LONGEST_SKIP} bytes; nothing from here on was read")
        self.line = line


def read_records(source: Lines, file_format: Format) -> Iterator[Record]:
    """Yield what the lines of a file hold; blank lines and a CSV header hold nothing.

    Args:
        source: UTF-8, with or without a byte order mark; read from where it stands, once, and
            not beyond a line of over a gibibyte.
        file_format: `jsonl` for an object of `id` and `qty` a line, `csv` for `id,qty`.
    """
    parse = _parse_csv if file_format == "csv" else _parse_json
    may_be_header = file_format == "csv"
    try:
        for number, line in _lines(source):
            if not line.strip():
                continue
            try:
                value = parse(line)
                if not (may_be_header and value == _HEADER):
                    yield Record(number, wire.event(value))
            except (_BadLineError, ValueError) as error:
                yield Record(number, None, str(error))
            may_be_header = False
    except _EndlessLineError as error:
        yield Record(error.line, None, str(error))


def _lines(source: Lines) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number, cut off just beyond the longest that is allowed."""
    number = 0
    while line := source.readline(LONGEST_LINE + 1):
        number += 1
        rest = line
        size = len(line)
        while rest and not rest.endswith(b"\n"):
            rest = source.readline(LONGEST_LINE)
            size += len(rest)
            if size > LONGEST_SKIP:
                raise _EndlessLineError(number)
        yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


def _parse_json(line: bytes) -> object:
    return wire.parse(_bounded(line))


def _parse_csv(line: bytes) -> object:
    try:
        (cells,) = csv.reader([_bounded(line).decode()], strict=True, skipinitialspace=True)
    except UnicodeDecodeError as error:
        raise _BadLineError(f"the text is not UTF-8 at byte {error.start}") from error
    except csv.Error as error:
        raise _BadLineError(f"not CSV: {error}") from error
    if len(cells) != 2:  # noqa: PLR2004  (id and qty)
        raise _BadLineError(f"must be id,qty and not {len(cells)} field{'s'[: len(cells) != 1]}")
    job_id, qty = (cell.strip() for cell in cells)
    return {"id": job_id, "qty": int(qty) if _DIGITS.fullmatch(qty) else qty}


def _bounded(line: bytes) -> bytes:
    if len(line) > LONGEST_LINE:
        raise _BadLineError(f"longer than {LONGEST_LINE} bytes")
    return line
