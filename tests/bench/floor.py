"""The limit: the smallest write transaction that SQLite can make with a file's settings."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from tests.bench.rounds import timed

_ROWS = 1_000


class Floor:
    """A file of counters; each transaction raises some of them."""

    def __init__(self, path: Path, journal_mode: str, synchronous: str) -> None:
        self.con = sqlite3.connect(path, isolation_level=None)
        self.con.execute(f"PRAGMA journal_mode = {journal_mode}")
        self.con.execute(f"PRAGMA synchronous = {synchronous}")
        self.con.execute("CREATE TABLE counters (id INTEGER PRIMARY KEY, times INTEGER NOT NULL)")
        self.con.execute("BEGIN")
        self.con.executemany("INSERT INTO counters VALUES (?, 0)", ((n,) for n in range(_ROWS)))
        self.con.execute("COMMIT")

    def change(self, rows: int = 1) -> None:
        """Commit one transaction that changes that many rows."""
        self.con.execute("BEGIN IMMEDIATE")
        self.con.execute("UPDATE counters SET times = times + 1 WHERE id < ?", (rows,))
        self.con.execute("COMMIT")

    def twice(self) -> Mapping[str, float]:
        """Time two transactions of one row, as claim and finish are two."""
        first, second = timed(self.change), timed(self.change)
        return {"transaction": (first + second) / 2, "two transactions": first + second}


def plain_open(path: Path) -> None:
    """Connect, set what a queue sets, read once, and close."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=1)) as con:
        con.execute("PRAGMA journal_mode = DELETE").fetchone()
        con.execute("PRAGMA synchronous = FULL")
        con.execute("SELECT seq, status FROM jobs LIMIT 1").fetchone()
