"""Take one step from given rows by the real verb, try the rules on it, and kill it everywhere."""

import sqlite3
from typing import Any, NamedTuple

from lease.jobs._tally import TALLY_CHECK
from lease.jobs._tree import TREE_CHECK
from tests.proof.rules import Taken, Violation, check
from tests.proof.steps import Step, on_file, on_model
from tests.proof.store import Snapshot, Store
from tests.proof.watched import When


class Crash(BaseException):
    """The process ends here; what is left of it runs no code but the rollback of its journal."""


class Result(NamedTuple):
    """What a step came to."""

    answer: Any
    rows: Snapshot


class Laboratory:
    """Runs verbs on one database and counts how many, and how many of those were killed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._con = store.con
        self.verbs = 0
        self.crashes = 0

    def take(self, rows: Snapshot, step: Step) -> Result:
        """Run the verb from those rows; where it changes any, kill it at each statement as well.

        Raises:
            Violation: a rule does not hold of the step, or of one of the kills.
        """
        self._store.go(rows)
        count = _Countdown()
        self._con.watcher = count
        answer, after = self._run(rows, step)
        check(Taken(step, rows.book, answer, after.book, on_model(rows.book, step)))
        if after != rows:
            # Not by their public checks, which know a seeded fault by the text of its trigger.
            for row in (*TREE_CHECK.many(self._con), *TALLY_CHECK.many(self._con)):
                raise Violation("tree_and_tally_are_right", step, str(row))
            for statement in range(1, count.begun):
                self._kill(_Countdown(before=statement), rows, step, rows)
            self._kill(_Countdown(after_commit=True), rows, step, after)
        return Result(answer, after)

    def _run(self, rows: Snapshot, step: Step) -> Result:
        self.verbs += 1
        changes = self._con.total_changes
        try:
            answer = on_file(self._con, step)
        except sqlite3.Error as error:
            raise Violation("no_other_error", step, repr(error)) from error
        finally:
            self._con.watcher = None
        if self._con.in_transaction:
            self._con.execute("ROLLBACK")
            raise Violation("no_transaction_left_open", step, str(step))
        return Result(answer, rows if self._con.total_changes == changes else self._store.read())

    def _kill(self, countdown: "_Countdown", rows: Snapshot, step: Step, left: Snapshot) -> None:
        self.crashes += 1
        self._store.go(rows)
        self._con.watcher = countdown
        try:
            self._run(rows, step)
        except Crash:
            found = self._store.read()
        else:
            raise Violation("nothing_is_hidden", step, f"{step} went on after {countdown}")
        if found != left:
            raise Violation("all_or_nothing", step, f"{step}, killed {countdown}, left {found}")


class _Countdown:
    """Counts the statements of a verb, and raises `Crash` at one of them."""

    def __init__(self, before: int | None = None, *, after_commit: bool = False) -> None:
        self.begun = 0
        self._before = before
        self._after_commit = after_commit

    def __call__(self, when: When, sql: str) -> None:
        if when == "before" and sql != "ROLLBACK":
            if self.begun == self._before:
                raise Crash
            self.begun += 1
        elif self._after_commit and sql == "COMMIT":
            raise Crash

    def __str__(self) -> str:
        return "after COMMIT" if self._after_commit else f"before statement {self._before}"
