"""The crash matrix as Markdown: where a process was killed, and what the next one found.

`python -m tests.proof.crash_table README.md` puts it between the two marks in that file.
"""

import json
import sys
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.proof.crash_matrix import Boundary, Kill
from tests.proof.recovered import read
from tests.proof.scenarios import SCENARIOS
from tests.support.model import Book, Job
from tests.support.processes import output, run_code

_OPEN, _CLOSE = "<!-- crash-matrix -->", "<!-- /crash-matrix -->"

_RUN = "import runpy, sys; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"


class Found(NamedTuple):
    """One kill, the rows before the verb began, those that must be there, those that are."""

    kill: Kill
    before: Book
    expected: Book
    after: Book


def run(folder: Path) -> list[Found]:
    """Kill everywhere in one process, read everything in another."""
    killed = output(run_code(_RUN, "tests.proof.crash_matrix", folder))
    kills = [
        Kill(scenario, Boundary(*boundary), commits, file)
        for scenario, boundary, commits, file in json.loads(killed)
    ]
    names = [kill.file for kill in kills]
    books = read(output(run_code(_RUN, "tests.proof.recovered", folder, *names)))
    expected = {scenario.name: scenario.books() for scenario in SCENARIOS}
    return [
        Found(
            kill,
            expected[kill.scenario][0],
            expected[kill.scenario][kill.commits],
            books[kill.file],
        )
        for kill in kills
    ]


def markdown(found: list[Found]) -> str:
    """Write one row for each stretch between two statements; its kills have one outcome."""
    lines = ["| Verb | Killed | Rows before | Rows after |", "| --- | --- | --- | --- |"]
    for scenario, kills in groupby(found, key=lambda each: each.kill.scenario):
        title = scenario
        for stretch in _stretches(list(kills)):
            first = stretch[0]
            (after,) = {each.after for each in stretch}
            outcome = "the same" if after == first.before else _rows(after)
            where = ", ".join(_place(each.kill.boundary) for each in stretch)
            before = _rows(first.before) if title else ""
            lines.append(f"| {title} | {where} | {before} | {outcome} |")
            title = ""
    return "\n".join(lines)


def _stretches(kills: list[Found]) -> list[list[Found]]:
    stretches: list[list[Found]] = [[]]
    for each in kills:
        if each.kill.boundary.when == "after":
            stretches.append([])
        stretches[-1].append(each)
    return stretches


def _place(boundary: Boundary) -> str:
    return f"{boundary.when} `{boundary.what}`"


def _rows(book: Book) -> str:
    rows = [_job(job) for job in book.jobs]
    if book.audits:
        rows.append(f"audit rows {len(book.audits)}")
    return "; ".join(rows) or "none"


def _job(job: Job) -> str:
    detail = job.reason or (f"to {job.lease_until}" if job.status == "leased" else "")
    state = f"{job.status} ({detail})" if detail else job.status
    return f"{job.id} {state}, attempts {job.attempts}, token {job.token}"


def shown(file: Path) -> str:
    """Return the table that a file shows."""
    return file.read_text(encoding="utf-8").partition(_OPEN)[2].partition(_CLOSE)[0].strip()


def show(file: Path, table: str) -> None:
    """Put the table into a file, between its two marks."""
    before, _, rest = file.read_text(encoding="utf-8").partition(_OPEN)
    _, _, after = rest.partition(_CLOSE)
    file.write_text(f"{before}{_OPEN}\n\n{table}\n\n{_CLOSE}{after}", encoding="utf-8")


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        show(Path(sys.argv[1]), markdown(run(Path(place))))
