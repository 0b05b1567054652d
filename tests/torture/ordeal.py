"""An ordeal: workers, receivers and operators that are killed, stopped, starved and misled.

Every choice comes from one seed. What is right is read from the two databases, and from what
children noted, once all that was left has been delivered.
"""

import json
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from lease import jobs
from lease.db.durability import JournalMode
from lease.inbox import open_inbox
from tests.support.queue import faults_beside
from tests.support.torture import AFFLICTED, SKEW_MS, Nursery, noted, opened
from tests.torture.judges import (
    Audit,
    batches_of,
    counted,
    wrong_with_audits,
    wrong_with_batches,
    wrong_with_file,
    wrong_with_job,
    wrong_with_looks,
)

_WORKERS = 4
_FILE_LINES = 12

#: What happens next, and how often next to the others.
_EVENTS = {
    "kill worker": 24,
    "stop worker": 6,
    "kill receiver": 2,
    "starve worker": 3,
    "starve receiver": 1,
    "kill enqueuer": 5,
    "kill file": 2,
    "kill operator": 2,
    "kill bulk operator": 2,
    "kill monitor": 1,
}


class Findings(NamedTuple):
    """What the ordeal came to, for the report and the test."""

    kills: int
    stops: int
    jobs: int
    done: int
    dead: dict[str, int]
    effects: int
    requests: int
    claims: int
    redrives: int
    in_bulk: int
    looks: int
    died_of: set[str]
    faults: list[str]


class Ordeal:
    """One ordeal in a folder of its own."""

    def __init__(
        self, folder: Path, seed: int, mode: JournalMode, kills: int, most_s: float
    ) -> None:
        self._queue = str(folder / "queue.db")
        self._mode = mode
        self._inbox = str(folder / "inbox.db")
        self._accepted = folder / "accepted"
        self._url = folder / "url"
        self._folder = folder
        self._chance = random.Random(seed)
        self._wanted = kills
        self._end_s = time.monotonic() + most_s
        self._kills = self._stops = self._made = 0
        self._workers: dict[int, bool] = {}
        self._others: list[tuple[int, float, bool]] = []
        self._stopped: list[tuple[float, int]] = []
        self._receiver = 0
        self._receiver_ends = 0.0
        self._monitor = 0
        self._notes: dict[str, list[Path]] = {"redrive_in_bulk": [], "watch": []}
        self._files: list[list[str]] = []
        self._faults: list[str] = []

    def run(self) -> Findings:
        """Go through all of it."""
        self._prepare()
        with Nursery(self._folder) as self._nursery:
            self._start_receiver()
            self._monitor = self._start_noting("watch")
            while self._kills < self._wanted and time.monotonic() < self._end_s:
                self._tick()
            self._recover()
            self._kill(self._monitor, afflicted=False)
        return self._judge()

    def _prepare(self) -> None:
        jobs.open_queue(self._queue, journal_mode=self._mode).close()
        with closing(open_inbox(self._inbox)) as con:
            con.execute("CREATE TABLE ledger (id TEXT NOT NULL, qty INTEGER NOT NULL)")

    def _tick(self) -> None:
        time.sleep(self._chance.uniform(0, 0.05))
        now_s = time.monotonic()
        for until_s, pid in [each for each in self._stopped if each[0] <= now_s]:
            self._stopped.remove((until_s, pid))
            self._nursery.signal(pid, signal.SIGCONT)
        for pid, until_s, afflicted in [each for each in self._others if each[1] <= now_s]:
            self._others.remove((pid, until_s, afflicted))
            self._kill(pid, afflicted=afflicted)
        self._keep_alive()
        event = self._chance.choices(list(_EVENTS), list(_EVENTS.values()))[0]
        # In the last quarter nobody revives the dead, so that the judges meet some of every kind.
        if not event.endswith("operator") or self._kills < self._wanted * 3 / 4:
            self._do(event, now_s)

    def _do(self, event: str, now_s: float) -> None:
        chance = self._chance
        if event == "kill worker":
            self._end_worker(chance.choice(list(self._workers)))
        elif event == "stop worker":
            pid = chance.choice(list(self._workers))
            if pid not in [each for _, each in self._stopped]:
                self._nursery.signal(pid, signal.SIGSTOP)
                self._stops += 1
                # Longer than a lease as often as not.
                self._stopped.append((now_s + chance.uniform(0.05, 0.9), pid))
        elif event == "kill receiver":
            self._kill(self._receiver, afflicted=self._receiver_ends > 0)
            self._start_receiver()
        elif event == "starve receiver":
            self._kill(self._receiver, afflicted=self._receiver_ends > 0)
            self._start_receiver(self._affliction())
        elif event == "starve worker":
            self._end_worker(chance.choice(list(self._workers)))
            self._start_worker(self._affliction())
        elif event == "kill monitor":
            self._kill(self._monitor, afflicted=False)
            self._monitor = self._start_noting("watch")
        else:
            self._start_other(event, now_s)

    def _affliction(self) -> tuple[str, int]:
        if self._chance.random() < 0.5:
            return "full disk", self._chance.choice([0, 512, 5_000, 40_000, 90_000])
        return "no descriptors", self._chance.randint(4, 14)

    def _start_other(self, event: str, now_s: float) -> None:
        """Start a child that ends by itself, or by the kill that comes at some time."""
        self._made += 1
        if event == "kill enqueuer":
            pid = self._nursery.start(
                "enqueue",
                path=self._queue,
                accepted=str(self._accepted),
                name=str(self._made),
                seed=self._chance.getrandbits(32),
            )
        elif event == "kill file":
            names = [f"file-{self._made}-{line}" for line in range(_FILE_LINES)]
            source = self._folder / f"{self._made}.jsonl"
            source.write_text("".join(json.dumps({"id": n, "qty": 7}) + "\n" for n in names))
            self._files.append(names)
            pid = self._nursery.start("enqueue_file", path=self._queue, source=str(source))
        elif event == "kill bulk operator":
            pid = self._start_noting(
                "redrive_in_bulk", name=str(self._made), seed=self._chance.getrandbits(32)
            )
        else:
            pid = self._nursery.start(
                "redrive", path=self._queue, seed=self._chance.getrandbits(32)
            )
        self._others.append((pid, now_s + self._chance.uniform(0.01, 0.4), False))

    def _start_noting(self, role: str, **options: object) -> int:
        """Start a child that notes what it does, in a file of its own."""
        notes = self._folder / f"{role}-{len(self._notes[role])}"
        notes.touch()
        self._notes[role].append(notes)
        return self._nursery.start(role, path=self._queue, notes=str(notes), **options)

    def _keep_alive(self) -> None:
        """Start again what has ended by itself, which only an afflicted child may."""
        for pid, afflicted in list(self._workers.items()):
            code = self._nursery.ended(pid)
            if code is not None:
                del self._workers[pid]
                self._blame(pid, code, afflicted=afflicted)
        while len(self._workers) < _WORKERS:
            self._start_worker()
        code = self._nursery.ended(self._receiver)
        starved = 0 < self._receiver_ends < time.monotonic()
        if code is not None:
            self._blame(self._receiver, code, afflicted=True)
        elif starved:
            self._kill(self._receiver, afflicted=True)
        if code is not None or starved:
            self._start_receiver()
        code = self._nursery.ended(self._monitor)
        if code is not None:
            self._blame(self._monitor, code, afflicted=False)
            self._monitor = self._start_noting("watch")

    def _start_worker(self, affliction: tuple[str, int] | None = None) -> None:
        url = self._url.read_text()
        options: dict[str, Any] = {"path": self._queue, "url": url, "affliction": affliction}
        if self._chance.random() < 0.4:
            pid = self._nursery.start("work_by_command", **options)
        else:
            skew_ms = self._chance.choice([0, 0, self._chance.randint(-SKEW_MS, SKEW_MS)])
            owner = f"worker-{self._chance.getrandbits(32)}"
            options |= {"skew_ms": skew_ms, "until": "stopped", "owner": owner}
            pid = self._nursery.start("work", **options)
        self._workers[pid] = affliction is not None

    def _start_receiver(self, affliction: tuple[str, int] | None = None) -> None:
        port = int(self._url.read_text().rpartition(":")[2].strip("/")) if self._made else 0
        self._receiver = self._nursery.start(
            "receive",
            inbox=self._inbox,
            port=port,
            told=str(self._url),
            affliction=affliction,
        )
        # A starved one may live on and refuse everything: not for long.
        self._receiver_ends = time.monotonic() + 0.3 if affliction else 0.0
        if not self._made:
            self._made = 1
            self._wait_for_receiver()

    def _wait_for_receiver(self) -> None:
        while not self._url.exists():
            assert self._nursery.ended(self._receiver) is None, "the receiver did not start"
            time.sleep(0.01)

    def _end_worker(self, pid: int) -> None:
        self._stopped = [each for each in self._stopped if each[1] != pid]
        self._kill(pid, afflicted=self._workers.pop(pid))

    def _kill(self, pid: int, *, afflicted: bool) -> None:
        code = self._nursery.signal(pid, signal.SIGKILL)
        if code == -signal.SIGKILL:
            self._kills += 1
        else:
            self._blame(pid, code, afflicted=afflicted)

    def _blame(self, pid: int, code: int | None, *, afflicted: bool) -> None:
        """Note a child that should not have ended so."""
        if code == 0 or (afflicted and code == AFFLICTED):
            return
        said = (self._folder / f"{pid}.log").read_text(errors="replace").strip()
        # Not its fault: for a moment a client of the one before held the port.
        if "Address already in use" not in said:
            self._faults.append(f"ended with {code}: {said[-400:]}")

    def _recover(self) -> None:
        """End everybody, and let healthy ones with clocks ahead of all deliver what is left."""
        for pid in list(self._workers):
            self._end_worker(pid)
        for pid, _, _ in self._others:
            self._kill(pid, afflicted=False)
        self._kill(self._receiver, afflicted=True)
        self._url.unlink()
        self._made = 0
        self._start_receiver()
        self._workers = {
            self._nursery.start(
                "work",
                path=self._queue,
                url=self._url.read_text(),
                skew_ms=SKEW_MS + 1000,
                until="drained",
                owner=f"heir-{number}",
            ): False
            for number in range(3)
        }
        end_s = time.monotonic() + 60
        while self._workers and time.monotonic() < end_s:
            for pid in list(self._workers):
                code = self._nursery.ended(pid)
                if code is not None:
                    del self._workers[pid]
                    self._blame(pid, code, afflicted=False)
            time.sleep(0.02)
        self._faults += [f"the heir {pid} never came to an end" for pid in self._workers]

    def _judge(self) -> Findings:
        """Hold the databases and the notes against what was promised."""
        with closing(sqlite3.connect(self._queue)) as con:
            self._faults += wrong_with_file(con, self._mode)
            con.row_factory = sqlite3.Row
            found = [dict(row) for row in con.execute("SELECT * FROM jobs ORDER BY seq")]
            con.row_factory = None
            rows = con.execute("SELECT seq, id, token, note FROM redrives ORDER BY seq")
            audits = [Audit(*row) for row in rows]
        with closing(opened(self._queue)) as con:
            self._faults += faults_beside(con)
            stats = jobs.stats(con)
        with closing(sqlite3.connect(self._inbox)) as con:
            self._faults += wrong_with_file(con, "delete")
            ledger = con.execute("SELECT id, qty FROM ledger").fetchall()
            requests = con.execute("SELECT total(requests) FROM inbox").fetchone()[0]
        effects = Counter(ledger)
        for job in found:
            self._faults += wrong_with_job(job, effects)
        self._faults += [f"{made} effects of {key}" for key, made in effects.items() if made != 1]
        self._judge_intake({job["id"] for job in found})
        self._faults += wrong_with_audits(audits, found)
        batches = [
            batch for notes in self._notes["redrive_in_bulk"] for batch in batches_of(noted(notes))
        ]
        self._faults += wrong_with_batches(batches, audits, found)
        looks = [look for notes in self._notes["watch"] for look in noted(notes)]
        self._faults += wrong_with_looks([*looks, stats])
        if stats != (rows_say := counted(found, audits)):
            self._faults.append(f"stats tell {stats}, and the rows {rows_say}")
        return Findings(
            kills=self._kills,
            stops=self._stops,
            jobs=len(found),
            done=sum(job["status"] == "done" for job in found),
            dead=dict(Counter(str(job["reason"]) for job in found if job["status"] == "dead")),
            effects=len(ledger),
            requests=int(requests),
            claims=stats["claims"],
            redrives=len(audits),
            in_bulk=sum(audit.note.startswith("bulk-") for audit in audits),
            looks=len(looks),
            died_of={
                reason for look in looks for reason, dead in look["dead_reasons"].items() if dead
            },
            # Many children may fail alike: each fault once, and no more than can be read.
            faults=list(dict.fromkeys(self._faults))[:10],
        )

    def _judge_intake(self, recorded: set[str]) -> None:
        accepted = self._accepted.read_text().split() if self._accepted.exists() else []
        self._faults += [
            f"{each} was accepted and is gone" for each in accepted if each not in recorded
        ]
        for names in self._files:
            taken = recorded.intersection(names)
            if taken and len(taken) < len(names):
                self._faults.append(f"{len(taken)} of the {len(names)} lines of a file")


def new_seed() -> int:
    """Return the seed of the environment, or one that nobody knows yet."""
    return int(os.environ.get("LEASE_SEED") or random.SystemRandom().getrandbits(32))
