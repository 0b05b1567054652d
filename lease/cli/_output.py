"""Tables and JSON on stdout, of whatever a file holds."""

import json
from collections.abc import Sequence

import click


def print_json(value: object) -> None:
    """Print a value as one line of JSON in ASCII; bytes, which JSON has none of, as Python does."""
    click.echo(json.dumps(value, default=repr))


def printable(value: object) -> str:
    """Return a value as text of which no character steers a terminal."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]], right: set[int]) -> None:
    """Print rows under a header, each column as wide as it needs to be.

    Args:
        header: the names of the columns.
        rows: the cells; each is made printable.
        right: positions of the columns that hold numbers.
    """
    lines = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    click.secho(_line(header, widths, right), bold=True)
    for row in lines:
        click.echo(_line(row, widths, right))


def _line(cells: Sequence[str], widths: Sequence[int], right: set[int]) -> str:
    padded = (
        cell.rjust(width) if at in right else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join(padded).rstrip()
