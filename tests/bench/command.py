"""The command: choose what to measure, measure it, write what is asked for."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench import plot
from tests.bench.machine import described
from tests.bench.scale import FULL, QUICK
from tests.bench.table import Table

#: What can be measured, each by the module in `sections`, in the order of the table.
SECTIONS = {
    "limit": "limit",
    "verbs": "verbs",
    "shapes": "shapes",
    "growth": "growth",
    "pages": "pages",
    "batches": "batches",
    "peers": "peers",
    "backlog": "backlog",
    "workers": "workers",
    "sender": "sender",
    "open": "opening",
    "import": "importing",
    "memory": "memory",
}


def main(arguments: Sequence[str]) -> int:
    """Measure; return 0, or 1 if a target was missed, though never for a quick run."""
    parser = _parser()
    options = parser.parse_args(arguments)
    unknown = [section for section in options.sections if section not in SECTIONS]
    if unknown:
        parser.error(f"there is no section {unknown[0]}; choose from: {', '.join(SECTIONS)}")
    scale = QUICK if options.quick else FULL
    if options.rounds:
        scale = scale._replace(rounds=options.rounds)
    with TemporaryDirectory(prefix="lease-bench-", dir=options.folder) as place:
        table = Table(described(Path(place)))
        for section in options.sections or SECTIONS:
            module = import_module(f"tests.bench.sections.{SECTIONS[section]}")
            own = Path(place, section)
            own.mkdir()
            for row in table.add(section, module.run(scale, own)):
                sys.stderr.write(f"{'  '.join(filter(None, row.cells(section)))}\n")
    lines = plot.series(row for _, row in table.rows)
    if lines:
        sys.stdout.write(f"{plot.text(lines)}\n")
    sys.stdout.write(table.text())
    _write(options.markdown, table.markdown())
    _write(options.targets, table.markdown(only_targets=True))
    _write(options.json, table.json_lines())
    _write(options.svg, plot.svg(lines, table.machine) if lines else "")
    missed = [] if options.quick else table.missed()
    for name in missed:
        sys.stderr.write(f"missed: {name}\n")
    return 1 if missed else 0


def _write(path: Path | None, text: str) -> None:
    if path is not None:
        path.write_text(text, encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Measure lease against SQLite itself, against no index, and against its peers."
        " Only the ratios inside one run mean anything.",
        epilog="Peers that are not installed are listed as such; `pip install '.[bench]'` gets"
        " those that this Python can have.",
    )
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"some of: {', '.join(SECTIONS)}"
    )
    parser.add_argument("--quick", action="store_true", help="only see that everything runs")
    parser.add_argument("--rounds", type=int, help="values behind each median")
    parser.add_argument("--folder", help="measure on the disk of this folder")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table")
    parser.add_argument("--targets", type=Path, metavar="FILE", help="write the rows with targets")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write each round's numbers")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write the plot")
    return parser
