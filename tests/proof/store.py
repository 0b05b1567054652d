"""The queue's database in memory, taken from state to state by writing rows, and read back."""

import sqlite3
from contextlib import closing
from functools import cache
from typing import Any, NamedTuple

from lease.db.migrations import migrate
from lease.jobs._open import OPEN_PROBE
from tests.proof.watched import WatchedConnection
from tests.support.model import Audit, Book, Job

Rows = tuple[tuple[Any, ...], ...]

_OWN = ("jobs", "redrives")
# What the triggers of one table write comes after that table.
_BESIDE = ("sqlite_sequence", "tree_leaves", "tree_branches", "tally_busy", "tally_totals")


class Snapshot(NamedTuple):
    """Every row that a verb may read or write: the two tables, and what is kept beside them."""

    book: Book
    beside: tuple[Rows, ...]


def in_memory() -> WatchedConnection:
    """Open a new queue in memory, its schema made by the real migrations."""
    con = sqlite3.connect(":memory:", isolation_level=None, factory=WatchedConnection)
    con.deserialize(_empty_queue())
    return con


@cache
def _empty_queue() -> bytes:
    # Once: the migrations take longer than most of what is done with them.
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as con:
        migrate(con, "queue", OPEN_PROBE)
        return con.serialize()


def read_book(con: sqlite3.Connection) -> Book:
    """Read all jobs and audit rows, and how far the numbers of the jobs have gone."""
    numbers = con.execute("SELECT seq FROM sqlite_sequence WHERE name = 'jobs'").fetchall()
    return Book(
        tuple(map(Job._make, con.execute("SELECT * FROM jobs ORDER BY seq"))),
        tuple(map(Audit._make, con.execute("SELECT * FROM redrives ORDER BY seq"))),
        numbers[0][0] if numbers else 0,
    )


class Store:
    """One database in memory; the other tables are sqlite_sequence and those that triggers keep.

    Args:
        last_seq: the number that a job was given last, so that the next ones may lie on either
            side of where the tree parts.
    """

    def __init__(self, last_seq: int = 0) -> None:
        self.con = in_memory()
        names = self.con.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%yoyo%'"
        )
        assert {name for (name,) in names} == {*_OWN, *_BESIDE}
        self._insert = {
            table: f"INSERT OR REPLACE INTO {table} VALUES ({self._places(table)})"
            for table in (*_OWN, *_BESIDE)
        }
        if last_seq:
            self.con.execute("INSERT INTO sqlite_sequence VALUES ('jobs', ?)", (last_seq,))
        self.now = self.read()

    def _places(self, table: str) -> str:
        return ", ".join("?" * len(self.con.execute(f"PRAGMA table_info({table})").fetchall()))

    def read(self) -> Snapshot:
        """Read every row, and remember that the database is there now."""
        beside = tuple(tuple(self.con.execute(f"SELECT * FROM {name}")) for name in _BESIDE)
        self.now = Snapshot(read_book(self.con), beside)
        return self.now

    def go(self, to: Snapshot) -> None:
        """Write the rows of another state; the tables kept by triggers come last, and exactly."""
        if to == self.now:
            return
        self.con.execute("BEGIN")
        # Only what differs: each row that is written to `jobs` sets off its triggers.
        kept = {job.seq for job in to.book.jobs}
        gone = [(job.seq,) for job in self.now.book.jobs if job.seq not in kept]
        come = [job for job in to.book.jobs if job not in self.now.book.jobs]
        self.con.executemany("DELETE FROM jobs WHERE seq = ?", gone)
        self.con.executemany(self._insert["jobs"], come)
        if self.now.book.audits != to.book.audits:
            self._refill("redrives", to.book.audits)
        # The triggers have changed these since they were read.
        for table, rows in zip(_BESIDE, to.beside, strict=True):
            self._refill(table, rows)
        self.con.execute("COMMIT")
        self.now = to

    def _refill(self, table: str, rows: Rows) -> None:
        self.con.execute(f"DELETE FROM {table}")
        self.con.executemany(self._insert[table], rows)

    def close(self) -> None:
        """Close the connection."""
        self.con.close()
