"""One table out: as text for a terminal, as Markdown for a page, as JSON lines for a machine."""

import json
from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from tests.bench.targets import Target

_HEAD = ("section", "what", "median", "ratio", "to", "target", "held")


class Row(NamedTuple):
    """One figure.

    Args:
        what: what was measured.
        samples: its values, one a round; empty where there is only a note.
        unit: of the values.
        ratios: the values against another case's, round by round.
        to: what the ratios are to.
        target: the bound on the ratio, or on the value where there is no ratio.
        note: what stands in place of a value, or explains it.
        size: rows in the table, for the plot.
    """

    what: str
    samples: Sequence[float] = ()
    unit: str = "us"
    ratios: Sequence[float] = ()
    to: str = ""
    target: Target | None = None
    note: str = ""
    size: int | None = None

    @property
    def held(self) -> bool | None:
        """Whether the target is kept; None where there is no target or nothing was measured."""
        measured = self.ratios or self.samples
        if self.target is None or not measured:
            return None
        return self.target.holds(median(measured))

    def cells(self, section: str) -> tuple[str, ...]:
        """Return the row as it is printed."""
        value = f"{shown(median(self.samples))} {self.unit}" if self.samples else ""
        return (
            section,
            self.what,
            " ".join(filter(None, (value, self.note))),
            shown(median(self.ratios)) if self.ratios else "",
            self.to,
            str(self.target or ""),
            {True: "yes", False: "no", None: "-" if self.target else ""}[self.held],
        )


class Table:
    """The rows of a run, section by section."""

    def __init__(self, machine: str) -> None:
        self.machine = machine
        self.rows: list[tuple[str, Row]] = []

    def add(self, section: str, rows: Iterable[Row]) -> list[Row]:
        """Take a section's rows; return them."""
        found = list(rows)
        self.rows.extend((section, row) for row in found)
        return found

    def text(self) -> str:
        """Return aligned columns under a line about the machine."""
        return f"{self.machine}\n\n{aligned([_HEAD, *self._cells()])}"

    def markdown(self, *, only_targets: bool = False) -> str:
        """Return a Markdown table, of all rows or of those with a target."""
        lines = [_HEAD, ("---",) * len(_HEAD), *self._cells(only_targets=only_targets)]
        body = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        return f"{self.machine}\n\n{body}\n"

    def json_lines(self) -> str:
        """Return every round's numbers, one row a line."""
        lines = [{"machine": self.machine}]
        for section, row in self.rows:
            target = row.target._asdict() if row.target else None
            fields = {**row._asdict(), "target": target, "held": row.held}
            lines.append({"section": section} | fields)
        return "".join(json.dumps(line) + "\n" for line in lines)

    def missed(self) -> list[str]:
        """Name the rows whose target was not kept."""
        return [f"{section}: {row.what}" for section, row in self.rows if row.held is False]

    def _cells(self, *, only_targets: bool = False) -> list[tuple[str, ...]]:
        return [
            row.cells(section)
            for section, row in self.rows
            if row.target is not None or not only_targets
        ]


def aligned(lines: Sequence[tuple[str, ...]]) -> str:
    """Return lines whose columns stand under each other."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "".join(f"{line.rstrip()}\n" for line in padded)


def shown(value: float) -> str:
    """Return a number with as many digits as anybody should believe."""
    if value == round(value) or abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
