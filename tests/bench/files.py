"""Queue files filled by plain SQL, as an outsider would, in every shape that costs its own."""

import sqlite3
from pathlib import Path
from typing import Literal, NamedTuple

from lease import jobs

#: The moment at which everything happens where no worker's clock runs.
NOW = 1_000_000_000_000
FAR = NOW + 1_000_000_000
OWNER = "bench"

# status, attempts, available_at, deadline, owner, lease_until
_KINDS: dict[str, tuple[str | int | None, ...]] = {
    "ready": ("pending", 0, NOW - 1, FAR, None, None),
    "delayed": ("pending", 0, FAR - 1, FAR, None, None),
    "overdue": ("pending", 0, NOW - 2, NOW - 1, None, None),
    "held": ("leased", 1, NOW - 1, FAR, "other", FAR),
    "expired": ("leased", 1, NOW - 2, FAR, "other", NOW - 1),
    "plenty": ("pending", 0, 0, 100 * NOW, None, None),
    "done": ("done", 1, NOW - 2, FAR, None, None),
}


class Block(NamedTuple):
    """A share of a table, in which the kinds of job alternate."""

    kinds: tuple[str, ...]
    share: float = 1.0


class Shape(NamedTuple):
    """What a table holds, oldest first.

    Args:
        name: of the row in the table of results.
        blocks: what lies in it, besides the newest job.
        claimable: whether the blocks can be claimed from; otherwise one ready job is the newest.
    """

    name: str
    blocks: tuple[Block, ...]
    claimable: bool = False


EMPTY = Shape("empty", ())
OVERDUE = Shape("all overdue", (Block(("overdue",)),))
IDLE = Shape("nothing ready", (Block(("delayed",)),), claimable=True)
#: Ready by the wall clock, for workers, which have one.
PLENTY = Shape("plenty", (Block(("plenty",)),), claimable=True)
DONE = Shape("done, one ready", (Block(("done",)),))
MIXED = Shape(
    "mixed",
    (
        Block(("delayed",), 0.3),
        Block(("done",), 0.3),
        Block(("ready", "expired", "delayed"), 0.4),
    ),
    claimable=True,
)
READY = Shape("ready", (Block(("ready",)),), claimable=True)

#: Every shape from which a job can be claimed.
SHAPES = (
    DONE,
    Shape("delayed, one ready", (Block(("delayed",)),)),
    Shape("in flight, one ready", (Block(("held",)),)),
    READY,
    Shape("expired leases", (Block(("expired",)),), claimable=True),
    Shape(
        "half delayed, half ready",
        (Block(("delayed",), 0.5), Block(("ready",), 0.5)),
        claimable=True,
    ),
    MIXED,
)


def opened(
    path: Path, journal_mode: str = "DELETE", synchronous: str = "FULL"
) -> sqlite3.Connection:
    """Open a queue, with its durability, or without it to see the algorithm alone."""
    mode: Literal["wal", "delete"] = "wal" if journal_mode == "WAL" else "delete"
    con = jobs.open_queue(path, journal_mode=mode)
    con.execute(f"PRAGMA synchronous = {synchronous}")
    return con


def fill(con: sqlite3.Connection, shape: Shape, size: int) -> None:
    """Put that many jobs into a queue, besides the one that is ready."""
    first = 0
    (level,) = con.execute("PRAGMA synchronous").fetchone()
    # Otherwise the first sync that is measured would write all of this to the disk.
    con.execute("PRAGMA synchronous = FULL")
    con.execute("BEGIN IMMEDIATE")
    for block in shape.blocks:
        count = round(size * block.share)
        put(con, block.kinds, first, count)
        first += count
    if not shape.claimable:
        put(con, ("ready",), first, 1)
    con.execute("COMMIT")
    con.execute(f"PRAGMA synchronous = {level}")


def put(con: sqlite3.Connection, kinds: tuple[str, ...], first: int, count: int) -> None:
    """Insert jobs of alternating kinds in one statement."""
    if not count:
        return
    con.execute(
        f"""
        WITH RECURSIVE
            numbers (i) AS (
                SELECT ? UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < ?
            ),
            kinds (k, status, attempts, available_at, deadline, owner, lease_until) AS (
                VALUES {", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * len(kinds))}
            )
        INSERT INTO jobs (
            id, qty, status, attempts, max_attempts, token, available_at, deadline, owner,
            lease_until
        )
        SELECT
            'job-' || i, 7, status, attempts, 1000, attempts, available_at, deadline, owner,
            lease_until
        FROM numbers CROSS JOIN kinds
        WHERE k = i % {len(kinds)}
        """,
        (
            first,
            first + count,
            *(value for k, kind in enumerate(kinds) for value in (k, *_KINDS[kind])),
        ),
    )


def events(first: int, count: int) -> list[dict[str, str | int]]:
    """Return events with ids that `fill` does not use."""
    return [{"id": f"event-{n}", "qty": 7} for n in range(first, first + count)]
