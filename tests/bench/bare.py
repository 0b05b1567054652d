"""The contract's two tables with no index and no trigger: what every structure is held against."""

import sqlite3
from pathlib import Path

from lease.db.resources import folder
from tests.bench.files import NOW, OWNER

Marker = tuple[str, int]

_TABLES = Path(folder("migrations", "sqlite").path, "queue_0001_jobs_and_redrives.sql")

_FIND = "SELECT qty FROM jobs WHERE id = ?"

_INSERT = """
INSERT INTO jobs (id, qty, status, attempts, max_attempts, token, available_at, deadline)
VALUES (?, ?, 'pending', 0, 3, 0, ?, ?)
"""

_BURY = """
UPDATE jobs
SET status = 'dead', owner = NULL, lease_until = NULL,
    reason = CASE WHEN deadline <= :now THEN 'deadline' ELSE 'exhausted' END
WHERE (status = 'pending' OR (status = 'leased' AND lease_until <= :now))
    AND (deadline <= :now OR attempts >= max_attempts)
"""

_TAKE = """
UPDATE jobs
SET status = 'leased', attempts = attempts + 1, token = token + 1, owner = :owner,
    lease_until = min(:now + 1000, deadline), reason = NULL
WHERE seq = (
    SELECT seq FROM jobs
    WHERE (status = 'pending' AND available_at <= :now)
        OR (status = 'leased' AND lease_until <= :now)
    ORDER BY seq LIMIT 1
)
RETURNING id, token
"""

_SETTLE = """
UPDATE jobs SET status = :status, owner = NULL, lease_until = NULL, available_at = :now
WHERE id = :id AND token = :token AND status = 'leased' AND lease_until > :now
"""


class Bare:
    """A queue that keeps the contract in the plainest way."""

    def __init__(self, path: Path, synchronous: str = "FULL") -> None:
        self.con = sqlite3.connect(path, isolation_level=None)
        self.con.execute("PRAGMA journal_mode = DELETE")
        self.con.execute(f"PRAGMA synchronous = {synchronous}")
        self.con.executescript(_TABLES.read_text(encoding="utf-8"))

    def enqueue(self, event: dict[str, str | int]) -> None:
        """Insert a job unless it is there."""
        self.con.execute("BEGIN IMMEDIATE")
        if self.con.execute(_FIND, (event["id"],)).fetchone() is None:
            self.con.execute(_INSERT, (event["id"], event["qty"], NOW, NOW + 60_000))
        self.con.execute("COMMIT")

    def claim(self) -> Marker:
        """Bury, then lease the oldest claimable job."""
        self.con.execute("BEGIN IMMEDIATE")
        self.con.execute(_BURY, {"now": NOW})
        (taken,) = self.con.execute(_TAKE, {"now": NOW, "owner": OWNER}).fetchall()
        self.con.execute("COMMIT")
        return taken

    def finish(self, marker: Marker, status: str = "done") -> None:
        """Settle a leased job."""
        job_id, token = marker
        self.con.execute("BEGIN IMMEDIATE")
        settled = {"id": job_id, "token": token, "status": status, "now": NOW}
        self.con.execute(_SETTLE, settled)
        self.con.execute("COMMIT")
