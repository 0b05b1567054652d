"""How many pages a verb writes, counted exactly, against the same verb without any index.

In WAL mode a commit appends each page it changed once, so the log's growth is the count. A
rollback journal writes the file's first page as well, on both sides of the comparison.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import mean, median

from lease import jobs
from tests.bench import files
from tests.bench.bare import Bare
from tests.bench.files import NOW, OWNER
from tests.bench.scale import Scale
from tests.bench.table import Row
from tests.bench.targets import EXTRA_PAGES, SAME_PAGES

_JOBS = 1_000
_FRAME_HEADER = 24


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Count the pages of enqueue, claim and finish, on a queue that has a backlog."""
    backlog = min(scale.backlog, 20_000)
    count = min(_JOBS, backlog)
    bare = Bare(folder / "bare.db", "OFF")
    with closing(bare.con), closing(files.opened(folder / "ours.db", synchronous="OFF")) as con:
        for each in (bare.con, con):
            files.fill(each, files.READY, backlog)
            each.execute("PRAGMA journal_mode = WAL").fetchone()
            each.execute("PRAGMA wal_autocheckpoint = 0").fetchone()
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
            least = written(bare.con, folder / "bare.db", with_none, count)
            found = written(con, folder / "ours.db", with_ours, count)
            yield Row(
                f"{verb}, {backlog:,} jobs ready",
                [median(found)],
                "pages",
                [median(found) / median(least)],
                "no index at all",
                target=None if verb == "enqueue" else SAME_PAGES,
            )
            yield Row(
                f"{verb}, {backlog:,} jobs ready: more than without any index, on average",
                [mean(found) - mean(least)],
                "pages",
                target=None if verb == "enqueue" else EXTRA_PAGES,
                note=f"({mean(found):.3f} against {mean(least):.3f})",
            )


def written(
    con: sqlite3.Connection, path: Path, step: Callable[[int], object], count: int
) -> list[float]:
    """Return how many pages the commit of each step changes."""
    con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    (size,) = con.execute("PRAGMA page_size").fetchone()
    log = f"{path}-wal"
    step(0)
    found, before = [], os.stat(log).st_size
    for number in range(1, count):
        step(number)
        after = os.stat(log).st_size
        found.append((after - before) / (size + _FRAME_HEADER))
        before = after
    return found
