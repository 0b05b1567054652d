"""How many pages a verb writes, counted exactly, against the same verb without any index.

In WAL mode a commit appends each page it changed once; the length of that log is the count. A
rollback journal also writes the first page each time, on both sides of the comparison.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from lease import jobs
from tests.bench import files
from tests.bench.bare import Bare
from tests.bench.files import NOW, OWNER
from tests.bench.scale import Scale
from tests.bench.table import Row
from tests.bench.targets import SAME_PAGES

_JOBS = 200


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Count the pages of enqueue, claim and finish, on a queue that has a backlog."""
    backlog = min(scale.backlog, 20_000)
    count = min(_JOBS, backlog)
    bare = Bare(folder / "pages-bare.db")
    with closing(bare.con), closing(files.opened(folder / "pages.db")) as con:
        for each in (bare.con, con):
            files.fill(each, files.READY, backlog)
            each.execute("PRAGMA journal_mode = WAL")
            each.execute("PRAGMA wal_autocheckpoint = 0")
        new = files.events(0, count)
        markers: list = []
        tickets: list = []
        theirs = (
            lambda n: bare.enqueue(new[n]),
            lambda n: markers.append(bare.claim()),
            lambda n: bare.finish(markers[n]),
        )
        ours = (
            lambda n: jobs.enqueue(con, new[n], NOW, 60_000),
            lambda n: tickets.append(jobs.claim(con, OWNER, NOW)),
            lambda n: jobs.finish(con, tickets[n], "ok", NOW),
        )
        verbs = zip(("enqueue", "claim", "finish"), theirs, ours, strict=True)
        for verb, with_none, with_ours in verbs:
            least = written(bare.con, with_none, count)
            found = written(con, with_ours, count)
            yield Row(
                f"{verb}, {backlog:,} ready rows",
                [found / count],
                "pages",
                [found / least],
                f"no index at all ({least / count:.2f} pages)",
                target=None if verb == "enqueue" else SAME_PAGES,
            )


def written(con: sqlite3.Connection, step: Callable[[int], object], count: int) -> int:
    """Return how many pages the commits of some steps change."""
    con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for number in range(count):
        step(number)
    ((_, frames, _),) = con.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    return frames
