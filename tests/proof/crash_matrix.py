"""Kill a real process at every boundary of every verb, and tell what the next process finds.

Run as a program in an empty folder, it leaves one queue file for each kill. It is warm and
single-threaded and forks a child for each, so that a kill costs milliseconds. It opens none of
the files it hands out after they are copied; whoever reads them is the first to recover them.
"""

import inspect
import json
import os
import shutil
import signal
import sqlite3
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from lease import jobs
from lease.db.statements import _STATEMENTS
from tests.proof.scenarios import READINGS_MS, SCENARIOS, Scenario
from tests.proof.steps import File, Recorded
from tests.proof.watched import WatchedConnection, When

_NAMES = {each.sql: each.name for each in _STATEMENTS.values()}


class Boundary(NamedTuple):
    """Where a process may end: before or after a statement, or in what the verb calls."""

    when: str
    what: str


class Kill(NamedTuple):
    """One process that was killed, and the file it left."""

    scenario: str
    boundary: Boundary
    commits: int
    file: str


class Witness:
    """Notes each boundary that a verb passes, and kills its process at one of them."""

    def __init__(self, last: int | None = None) -> None:
        self.passed: list[Boundary] = []
        self._last = last

    def statement(self, when: When, sql: str) -> None:
        """Hear of a statement from the connection."""
        self._note(when, _NAMES.get(sql, sql))

    def call(self, name: str) -> None:
        """Hear of a fault hook from the verb."""
        self._note("in the hook", name)

    def effect(self, *_told: object) -> None:
        """Stand for what an application does in the transaction of a finish."""
        self._note("in", "effect")

    def send(self, _event: object) -> bool:
        """Stand for the outside world in `run_once`."""
        self._note("in", "send")
        return True

    def _note(self, when: str, what: str) -> None:
        if len(self.passed) == self._last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.passed.append(Boundary(when, what))


def kill_everywhere(folder: Path) -> list[Kill]:
    """Kill each scenario's verb once at each of its boundaries."""
    sqlite3.connect = partial(sqlite3.connect, factory=WatchedConnection)  # type: ignore[assignment]  # so that open_queue's own connection is watched
    kills = []
    for number, scenario in enumerate(SCENARIOS):
        template = folder / f"{number}.db"
        _prepare(template, scenario)
        boundaries = _dry_run(template, folder / "dry.db", scenario)
        for last, boundary in enumerate(boundaries):
            file = folder / f"{number}-{last}.db"
            shutil.copyfile(template, file)
            _kill_at(file, scenario, last)
            commits = boundaries[:last].count(Boundary("before", "COMMIT"))
            kills.append(Kill(scenario.name, boundary, commits, file.name))
    return kills


def _prepare(file: Path, scenario: Scenario) -> None:
    with closing(jobs.open_queue(file)) as con:
        recorded = Recorded(File(con))
        for step in scenario.before:
            recorded.take(step)


def _dry_run(template: Path, file: Path, scenario: Scenario) -> list[Boundary]:
    shutil.copyfile(template, file)
    witness = Witness()
    _act(file, scenario, witness)
    return witness.passed


def _kill_at(file: Path, scenario: Scenario, last: int) -> None:
    child = os.fork()
    if child == 0:
        try:
            _act(file, scenario, Witness(last))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
        raise RuntimeError(f"{scenario.name}: the child ended by itself, with status {status}")


def _act(file: Path, scenario: Scenario, witness: Witness) -> None:
    with closing(jobs.open_queue(file)) as con:
        assert isinstance(con, WatchedConnection)
        arguments: dict[str, Any] = scenario.arguments()
        verb = getattr(jobs, scenario.step.verb)
        parameters = inspect.signature(verb).parameters
        if "fault" in parameters:
            arguments["fault"] = witness.call
        if "effect" in parameters:
            arguments["effect"] = witness.effect
        if "send" in parameters:
            arguments["send"] = witness.send
            arguments["clock"] = iter(READINGS_MS).__next__
        con.watcher = witness.statement
        verb(con, **arguments)
        con.watcher = None


if __name__ == "__main__":
    print(json.dumps(kill_everywhere(Path(sys.argv[1]))))  # noqa: T201  (its answer)
