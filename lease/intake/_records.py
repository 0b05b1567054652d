"""Read events from lines of JSON or CSV, however many, long or broken they are."""

import csv
import json
import re
from collections.abc import Iterator
from typing import BinaryIO, Literal, NamedTuple

from lease import checks

Format = Literal["jsonl", "csv"]

# An event takes about a hundred bytes; what comes beyond this is skipped and never held.
LONGEST_LINE = 4096

_DIGITS = re.compile(r"[0-9]+")


class Record(NamedTuple):
    """What one line holds: an event as its id and quantity, or the problem that it has none."""

    line: int
    event: tuple[str, int] | None
    problem: str = ""


class _BadLineError(Exception):
    """The line holds no event; the message says why."""


def read_records(source: BinaryIO, file_format: Format) -> Iterator[Record]:
    """Yield what the lines of a file hold; blank lines and a CSV header hold nothing.

    Args:
        source: UTF-8, with or without a byte order mark; read from where it stands, once.
        file_format: `jsonl` for an object of `id` and `qty` a line, `csv` for `id,qty`.
    """
    parse = _parse_json if file_format == "jsonl" else _parse_csv
    may_be_header = file_format == "csv"
    for number, line in _lines(source):
        try:
            text = _decode(line)
            if not text:
                continue
            value = parse(text)
            if may_be_header and _is_header(value):
                may_be_header = False
                continue
            may_be_header = False
            yield Record(number, checks.event(value))
        except (_BadLineError, ValueError) as error:
            may_be_header = False
            yield Record(number, None, str(error))


def _lines(source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number, cut off just beyond the longest that is allowed."""
    number = 0
    while line := source.readline(LONGEST_LINE + 1):
        number += 1
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = source.readline(LONGEST_LINE)
        yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


def _decode(line: bytes) -> str:
    if len(line) > LONGEST_LINE:
        raise _BadLineError(f"longer than {LONGEST_LINE} bytes")
    try:
        return line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise _BadLineError(f"not UTF-8 at byte {error.start + 1}") from error


def _parse_json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_once_each)
    except json.JSONDecodeError as error:
        raise _BadLineError(f"not JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise _BadLineError("not an event: nested too deeply") from error


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _BadLineError("a key stands twice in one object")
    return found


def _parse_csv(text: str) -> object:
    try:
        (cells,) = csv.reader([text], strict=True, skipinitialspace=True)
    except csv.Error as error:
        raise _BadLineError(f"not CSV: {error}") from error
    if len(cells) != 2:  # noqa: PLR2004  (id and qty)
        raise _BadLineError(f"must be id,qty and not {len(cells)} fields")
    job_id, qty = (cell.strip() for cell in cells)
    return {"id": job_id, "qty": int(qty) if _DIGITS.fullmatch(qty) else qty}


def _is_header(value: object) -> bool:
    return value == {"id": "id", "qty": "qty"}
