"""Cut the power at a random moment of a random history, and hold what is left against the model.

What must hold, and no more:

- `journal_mode=DELETE` with `synchronous=FULL`, as a queue is opened: the rows are those of a
  whole number of transactions, and every transaction whose COMMIT returned is among them, but
  for the very last one while the deletion of its journal waits for the folder: SQLite does not
  sync the folder after the delete that commits. The next transaction syncs it.
- `synchronous=EXTRA` and `journal_mode=WAL` with FULL: without that exception.

A transaction that was on its way may be there as a whole or not at all.
"""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from lease import jobs
from tests.proof.disk import Disk, Event
from tests.proof.recorder import recording
from tests.proof.steps import File, Recorded, Step
from tests.proof.store import read_book
from tests.support.model import Book
from tests.support.queue import faults_beside

NAME = "queue.db"

# How often the power stays on during recovery.
_ONCE = 0.8


class Mode(NamedTuple):
    """The settings of a file."""

    journal: str
    synchronous: str


class Mark(NamedTuple):
    """Where in the record a transaction had returned, and the rows from then on."""

    at: int
    book: Book


class History(NamedTuple):
    """A file as it was, all calls on it since, and where each transaction returned."""

    files: dict[str, bytes]
    events: list[Event]
    marks: list[Mark]


class Loss(NamedTuple):
    """A cut: what it left, what may be left, and which of these it was."""

    at: int
    found: Book | str
    kind: str


def live(folder: Path, mode: Mode, chance: Random, steps: int) -> History:
    """Run random verbs on a new file, and record every call on the disk."""
    file = folder / NAME
    with closing(jobs.open_queue(file)) as con:
        con.execute(f"PRAGMA journal_mode = {mode.journal}")
    files = {NAME: file.read_bytes()}
    with recording(file) as (con, events):
        con.execute(f"PRAGMA synchronous = {mode.synchronous}")
        con.execute(f"PRAGMA wal_autocheckpoint = {chance.choice((5, 20, 1000))}")
        # A cache of few pages writes to the file long before COMMIT.
        con.execute(f"PRAGMA cache_size = {chance.choice((2, 2000))}")
        recorded = Recorded(File(con))
        marks = [Mark(0, recorded.book())]
        for _ in range(steps):
            _, book = recorded.take(_any_step(recorded, chance))
            if book != marks[-1].book:
                marks.append(Mark(len(events), book))
        # What closing does comes after the last cut.
        return History(files, list(events), marks)


def _any_step(recorded: Recorded, chance: Random) -> Step:
    now_ms = chance.randint(0, 30)
    steps: list[tuple[str, dict[str, Any]]] = [
        ("enqueue", {"event": _event(chance), "ttl_ms": 40}),
        ("enqueue_many", {"events": [_event(chance) for _ in range(30)], "ttl_ms": 40}),
        ("claim", {"owner": "w1", "lease_ms": 20}),
        ("claim_many", {"owner": "w2", "lease_ms": 20, "max_jobs": chance.randint(1, 20)}),
        ("redrive", {"job_id": _event(chance)["id"], "ttl_ms": 40, "note": "again"}),
    ]
    if recorded.issued:
        result = [_ticket(recorded, chance), chance.choice(("ok", "retry", "permanent")), 0]
        results = [[_ticket(recorded, chance), "ok", 0] for _ in range(10)]
        steps += [
            ("finish", dict(zip(("ticket", "outcome", "delay_ms"), result, strict=True))),
            ("finish_many", {"results": results}),
            ("finish_and_claim", {"results": [result], "owner": "w1", "max_jobs": 1}),
            ("renew", {"ticket": _ticket(recorded, chance), "lease_ms": 30}),
        ]
    verb, arguments = chance.choice(steps)
    return Step(verb, {**arguments, "now_ms": now_ms})


def _event(chance: Random) -> dict[str, Any]:
    return {"id": f"job-{chance.randrange(100)}", "qty": 1}


def _ticket(recorded: Recorded, chance: Random) -> dict[str, int]:
    return {"issued": len(recorded.issued) - chance.randint(1, min(10, len(recorded.issued)))}


def cut(folder: Path, history: History, chance: Random, points: int) -> list[Loss]:
    """Cut the power at that many random moments of one history, and look at what is left."""
    disk = Disk(history.files)
    done = 0
    losses = []
    for at in sorted(chance.choices(range(len(history.events) + 1), k=points)):
        for event in history.events[done:at]:
            disk.apply(event)
        done = at
        found = _recovered(folder, disk.lose_power(chance), chance)
        losses.append(Loss(at, found, _kind(history, disk, at, found)))
    return losses


def _kind(history: History, disk: Disk, at: int, found: Book | str) -> str:
    returned = sum(mark.at <= at for mark in history.marks) - 1
    books = [mark.book for mark in history.marks]
    if found == books[returned]:
        return "all that returned"
    if found in books[returned + 1 : returned + 2]:
        return "one more, on its way"
    if returned and found == books[returned - 1] and disk.delete_waits:
        return "all but the last, its journal came back"
    return "wrong"


def _recovered(folder: Path, files: dict[str, bytes], chance: Random) -> Book | str:
    """Open what is left, now and then with a second cut during the recovery itself."""
    _write(folder, files)
    found = _read(folder)
    if isinstance(found, str) or chance.random() < _ONCE:
        return found
    _write(folder, files)
    with recording(folder / NAME) as (con, events):
        read_book(con)
        during = events[: chance.randint(0, len(events))]
    disk = Disk(files)
    for event in during:
        disk.apply(event)
    _write(folder, disk.lose_power(chance))
    return found if _read(folder) == found else "a second cut changed what was recovered"


def _write(folder: Path, files: dict[str, bytes]) -> None:
    for file in folder.iterdir():
        file.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _read(folder: Path) -> Book | str:
    try:
        with closing(sqlite3.connect(folder / NAME, isolation_level=None)) as con:
            (verdict,) = con.execute("PRAGMA integrity_check").fetchone()
            faults = [] if verdict == "ok" else [str(verdict)]
            return next(iter(faults or faults_beside(con)), read_book(con))
    except sqlite3.DatabaseError as error:
        return repr(error)


def explore(folder: Path, mode: Mode, seed: int, histories: int, points: int) -> list[Loss]:
    """Cut the power at random in that many histories; everything follows from the seed."""
    chance = Random(f"{seed} {mode}")
    losses = []
    for number in range(histories):
        here, there = folder / f"{number}-live", folder / f"{number}-cut"
        here.mkdir()
        there.mkdir()
        history = live(here, mode, chance, steps=30)
        losses += cut(there, history, chance, points)
    return losses


def summary(losses: list[Loss]) -> str:
    """Count the kinds."""
    kinds = Counter(loss.kind for loss in losses)
    return f"{len(losses)} cuts: " + ", ".join(
        f"{count} {kind}" for kind, count in kinds.most_common()
    )
