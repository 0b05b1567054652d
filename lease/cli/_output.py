"""Tables and JSON on stdout."""

import json
from collections.abc import Sequence

import click


def print_json(value: object) -> None:
    """Print a value as one line of JSON in ASCII."""
    click.echo(json.dumps(value))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], right: set[int]) -> None:
    """Print rows under a header, each column as wide as it needs to be.

    Args:
        header: the names of the columns.
        rows: the cells.
        right: positions of the columns that hold numbers.
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    click.secho(_line(header, widths, right), bold=True)
    for row in rows:
        click.echo(_line(row, widths, right))


def _line(cells: Sequence[str], widths: Sequence[int], right: set[int]) -> str:
    padded = (
        cell.rjust(width) if at in right else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join(padded).rstrip()
