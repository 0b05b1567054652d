"""Random histories of a queue, outsiders' SQL included, told twice: for real and plainly.

A history is decided by its seed alone. After every step both sides must have answered alike and
hold the same rows, and the tree must be sound.
"""

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from lease import Conflict, jobs
from lease.db.resources import folder
from tests.support import shadow
from tests.support.queue import faults_beside

#: What was done, what came of it for real, and what comes of it plainly.
Told = tuple[str, Any, Any]

# Around the edges of leaves (64 seqs) and of branches (16384), and on both sides of zero.
SEQS = [
    -16385,
    -65,
    -64,
    -1,
    0,
    1,
    2,
    30,
    62,
    63,
    64,
    65,
    127,
    128,
    129,
    16383,
    16384,
    16385,
    99999,
]
# In more blocks of 128 seqs than may be busy at a time.
FAR = range(1000, 4000, 150)
IDS = [f"job-{number}" for number in range(14)]
STATES = ["pending", "leased", "done", "dead"]

NUMBERS = {
    "attempts": [0, 1, 2, 3, 4],
    "max_attempts": [1, 2, 3],
    "token": [0, 7],
    "qty": [1, 2],
}
OFFSETS = [-900, -60, -1, 0, 1, 2, 60, 700]
TIMES = ["available_at", "deadline", "lease_until"]


def migration(name: str) -> str:
    """Return the text of one of the queue's migrations or rollbacks."""
    return Path(folder("migrations", "sqlite").path, f"{name}.sql").read_text(encoding="ascii")


def upgrade(con: sqlite3.Connection) -> None:
    """Give a queue the tree and the tally."""
    con.executescript(migration("queue_0003_tree"))
    con.executescript(migration("queue_0004_tally"))


def twins(seed: int) -> tuple[sqlite3.Connection, sqlite3.Connection, "History"]:
    """Return two connections to equal queues, and the history that led there."""
    history = History(seed)
    with closing(history):
        while not history.has_tree or len(history.told) < 40:
            history.step()
        image = history.real.serialize()
    pair = []
    for _ in range(2):
        con = sqlite3.connect(":memory:", isolation_level=None)
        con.deserialize(image)
        pair.append(con)
    return pair[0], pair[1], history


class Diverged(NamedTuple):
    """Where the two sides first differed."""

    seed: int
    steps: list[str]
    found: Any
    expected: Any


class History:
    """One history in progress."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now_ms = self.chance.choice([0, 1000, 10**6])
        self.tickets: list[dict[str, Any]] = []
        self.told: list[str] = []
        self.real = sqlite3.connect(":memory:", isolation_level=None)
        self.real.executescript(migration("queue_0001_jobs_and_redrives"))
        self.real.executescript(migration("queue_0002_open_jobs"))
        self.plain = shadow.bare()
        self.has_tree = self.chance.random() < 0.7
        if self.has_tree:
            upgrade(self.real)
        if self.chance.random() < 0.5:
            self.real.execute("PRAGMA recursive_triggers = ON")

    def close(self) -> None:
        """Close both sides."""
        self.real.close()
        self.plain.close()

    # The verbs.

    def enqueue(self) -> Told:
        event = self._event()
        ttl_ms, budget = self.chance.choice([1, 60, 500, 5000]), self.chance.choice([1, 2, 3])
        try:
            made = jobs.enqueue(self.real, event, self.now_ms, ttl_ms, budget)
            found = "new" if made else "duplicate"
        except Conflict:
            found = "conflict"
        expected = shadow.enqueue(self.plain, event, self.now_ms, ttl_ms, budget)
        return f"enqueue({event}, {self.now_ms}, {ttl_ms}, {budget})", found, expected

    def claim(self) -> Told:
        lease_ms = self.chance.choice([1, 50, 600])
        found = jobs.claim(self.real, "w", self.now_ms, lease_ms)
        expected = shadow.claim(self.plain, "w", self.now_ms, lease_ms)
        if expected:
            self.tickets.append(expected)
        return f"claim({self.now_ms}, {lease_ms})", found, expected

    def finish(self) -> Told:
        ticket, outcome, delay_ms = self._result()
        found = jobs.finish(self.real, ticket, outcome, self.now_ms, delay_ms)
        expected = shadow.finish(self.plain, ticket, outcome, self.now_ms, delay_ms)
        return f"finish({ticket}, {outcome}, {self.now_ms}, {delay_ms})", found, expected

    def renew(self) -> Told:
        ticket, lease_ms = self._ticket(), self.chance.choice([1, 100, 2000])
        found = jobs.renew(self.real, ticket, self.now_ms, lease_ms)
        expected = shadow.renew(self.plain, ticket, self.now_ms, lease_ms)
        if expected:
            self.tickets.append(expected)
        return f"renew({ticket}, {self.now_ms}, {lease_ms})", found, expected

    def redrive(self) -> Told:
        job_id, ttl_ms = self.chance.choice(IDS), self.chance.choice([1, 60, 5000])
        try:
            jobs.redrive(self.real, job_id, self.now_ms, ttl_ms, "note")
            found = "redriven"
        except ValueError:
            found = "refused"
        expected = shadow.redrive(self.plain, job_id, self.now_ms, ttl_ms, "note")
        return f"redrive({job_id}, {self.now_ms}, {ttl_ms})", found, expected

    def enqueue_many(self) -> Told:
        batch = [self._event() for _ in range(self.chance.choice([0, 1, 3, 8]))]
        ttl_ms, budget = self.chance.choice([1, 60, 5000]), self.chance.choice([1, 3])
        found = jobs.enqueue_many(self.real, batch, self.now_ms, ttl_ms, budget)
        expected = [
            shadow.enqueue(self.plain, event, self.now_ms, ttl_ms, budget) for event in batch
        ]
        return f"enqueue_many({batch}, {self.now_ms}, {ttl_ms}, {budget})", found, expected

    def claim_many(self) -> Told:
        max_jobs, lease_ms = self.chance.choice([1, 2, 5, 20]), self.chance.choice([1, 50, 600])
        found = jobs.claim_many(self.real, "w", self.now_ms, max_jobs, lease_ms)
        expected = self._claims(max_jobs, lease_ms)
        return f"claim_many({self.now_ms}, {max_jobs}, {lease_ms})", found, expected

    def finish_many(self) -> Told:
        results = [self._result() for _ in range(self.chance.choice([0, 1, 2, 6]))]
        found = jobs.finish_many(self.real, results, self.now_ms)
        expected = [
            shadow.finish(self.plain, ticket, outcome, self.now_ms, delay_ms)
            for ticket, outcome, delay_ms in results
        ]
        return f"finish_many({results}, {self.now_ms})", found, expected

    def finish_and_claim(self) -> Told:
        results = [self._result() for _ in range(self.chance.choice([0, 1, 4]))]
        max_jobs, lease_ms = self.chance.choice([1, 3]), self.chance.choice([1, 50, 600])
        found = jobs.finish_and_claim(self.real, results, "w", self.now_ms, max_jobs, lease_ms)
        statuses = [
            shadow.finish(self.plain, ticket, outcome, self.now_ms, delay_ms)
            for ticket, outcome, delay_ms in results
        ]
        expected = statuses, self._claims(max_jobs, lease_ms)
        return f"finish_and_claim({results}, {self.now_ms}, {max_jobs})", found, expected

    def _claims(self, max_jobs: int, lease_ms: int) -> list[dict[str, Any]]:
        claims = [shadow.claim(self.plain, "w", self.now_ms, lease_ms) for _ in range(max_jobs)]
        tickets = [each for each in claims if each]
        self.tickets += tickets
        return tickets

    def next_due(self) -> Told:
        return "next_due", jobs.next_due(self.real), shadow.next_due(self.plain)

    def stats(self) -> Told:
        return "stats", jobs.stats(self.real), shadow.stats(self.plain)

    # What others do.

    def tick(self) -> Told:
        step = self.chance.choice([1, 1, 2, 10, 59, 60, 61, 500, 3000, -1, -40, -900])
        self.now_ms = max(0, self.now_ms + step)
        return f"now_ms = {self.now_ms}", None, None

    def outsider(self) -> Told:
        sql, values = self.chance.choice(
            [
                self._insert,
                self._edit,
                self._edit,
                self._edit_many,
                self._move,
                self._delete,
                self._scatter,
            ]
        )()
        return f"{sql} {values}", *(_run(con, sql, values) for con in (self.real, self.plain))

    def calm(self) -> Told:
        if self.has_tree:
            self.real.execute("DELETE FROM tally_busy")
        return "calm", None, None

    def migrate(self) -> Told:
        if self.has_tree and self.chance.random() < 0.3:
            self.real.executescript(migration("queue_0004_tally.rollback"))
            self.real.executescript(migration("queue_0003_tree.rollback"))
        elif not self.has_tree:
            upgrade(self.real)
        else:
            jobs.tree_rebuild(self.real)
            jobs.tally_rebuild(self.real)
            return "rebuild", None, None
        self.has_tree = not self.has_tree
        return f"tree = {self.has_tree}", None, None

    def step(self) -> Told:
        """Do one random thing on both sides; return what it was and both answers."""
        (act,) = self.chance.choices(list(WEIGHTS), WEIGHTS.values())
        step: Told = getattr(self, act)()
        self.told.append(step[0])
        return step

    # Chances.

    def _event(self) -> dict[str, Any]:
        return {"id": self.chance.choice(IDS), "qty": self.chance.choice([1, 1, 1, 2])}

    def _ticket(self) -> dict[str, Any]:
        recent = self.tickets[-6:]
        lost = {"id": "job-1", "qty": 1, "owner": "w", "token": 9, "attempt": 1, "lease_until": 9}
        return dict(self.chance.choice(recent)) if recent else lost

    def _result(self) -> tuple[dict[str, Any], str, int]:
        outcome = self.chance.choice(["ok", "retry", "retry", "permanent"])
        return self._ticket(), outcome, self.chance.choice([0, 1, 100, 3000])

    def _time(self) -> int:
        return max(0, self.now_ms + self.chance.choice(OFFSETS))

    def _column(self) -> tuple[str, Any]:
        name = self.chance.choice([*NUMBERS, *TIMES, *TIMES, "status", "status"])
        if name == "status":
            return name, self.chance.choice(STATES)
        if name == "lease_until" and self.chance.random() < 0.2:
            return name, None
        return name, self.chance.choice(NUMBERS[name]) if name in NUMBERS else self._time()

    def _insert(self) -> tuple[str, list[Any]]:
        clash = self.chance.choice(["", "OR REPLACE ", "OR IGNORE "])
        upsert = self.chance.choice(["", "", " ON CONFLICT (id) DO UPDATE SET status = 'pending'"])
        status = self.chance.choice(STATES)
        values = [
            self.chance.choice([*SEQS, None]),
            self.chance.choice(IDS),
            status,
            self.chance.choice(NUMBERS["attempts"]),
            self._time(),
            self._time() + 500,
            self._time() if status == "leased" or self.chance.random() < 0.2 else None,
        ]
        return (
            f"INSERT {clash}INTO jobs (seq, id, status, attempts, available_at, deadline,"
            " lease_until, qty, max_attempts, token) VALUES (?, ?, ?, ?, ?, ?, ?, 1, 3, 0)"
            + ("" if clash else upsert),
            values,
        )

    def _scatter(self) -> tuple[str, list[Any]]:
        first = self.chance.choice(FAR)
        values = [first + 150 * number for number in range(self.chance.choice([1, 1, 18]))]
        sql = (
            "INSERT OR IGNORE INTO jobs (seq, id, status, attempts, available_at, deadline, qty,"
            " max_attempts, token) SELECT value, 'far-' || value, 'done', 1, 0, 0, 1, 3, 5"
            " FROM json_each(?)"
        )
        return sql, [str(values)]

    def _edit(self) -> tuple[str, list[Any]]:
        columns = dict(self._column() for _ in range(self.chance.choice([1, 1, 2, 3])))
        sets = ", ".join(f"{name} = ?" for name in columns)
        return f"UPDATE jobs SET {sets} WHERE id = ?", [*columns.values(), self.chance.choice(IDS)]

    def _edit_many(self) -> tuple[str, list[Any]]:
        name, value = self._column()
        clause = self.chance.choice(["TRUE", "seq > ?", "seq <= ?", "status = 'pending'"])
        values = [value, self.chance.choice(SEQS)][: 1 + clause.count("?")]
        return f"UPDATE jobs SET {name} = ? WHERE {clause}", values

    def _move(self) -> tuple[str, list[Any]]:
        clash = self.chance.choice(["", "OR REPLACE ", "OR IGNORE "])
        if self.chance.random() < 0.3:
            return f"UPDATE {clash}jobs SET seq = seq + ?", [self.chance.choice([1000, -64, 1])]
        return (
            f"UPDATE {clash}jobs SET seq = ? WHERE id = ?",
            [self.chance.choice(SEQS), self.chance.choice(IDS)],
        )

    def _delete(self) -> tuple[str, list[Any]]:
        if self.chance.random() < 0.2:
            return "DELETE FROM jobs", []
        clause = self.chance.choice(["id = ?", "id > ?", "status = ?", "seq > ?"])
        pool = {"i": IDS, "st": STATES, "se": SEQS}
        (values,) = [pool[key] for key in pool if clause.startswith(key)]
        return f"DELETE FROM jobs WHERE {clause}", [self.chance.choice(values)]


WEIGHTS = {
    "enqueue": 5,
    "claim": 8,
    "finish": 5,
    "renew": 2,
    "redrive": 1,
    "next_due": 2,
    "stats": 2,
    "enqueue_many": 1,
    "claim_many": 2,
    "finish_many": 2,
    "finish_and_claim": 2,
    "tick": 6,
    "outsider": 6,
    "calm": 4,
    "migrate": 0.5,
}

# Those that must write nothing where they change no job.
VERBS = ("enqueue", "claim", "finish", "renew", "redrive", "next_due", "stats")


def tell(seed: int, steps: int) -> Diverged | None:
    """Tell one history; return where the two sides differed, or None."""
    with closing(History(seed)) as history:
        for _ in range(steps):
            before, changes = shadow.rows(history.real), history.real.total_changes
            step, found, expected = history.step()
            if found != expected:
                return Diverged(seed, history.told, found, expected)
            found, expected = shadow.rows(history.real), shadow.rows(history.plain)
            if found != expected:
                return Diverged(seed, history.told, found, expected)
            if history.has_tree and (faults := faults_beside(history.real)):
                return Diverged(seed, history.told, faults, [])
            written = history.real.total_changes - changes
            if written and found == before and step.startswith(VERBS):
                return Diverged(seed, history.told, f"{written} rows written", "none")
    return None


def _run(con: sqlite3.Connection, sql: str, values: list[Any]) -> str:
    try:
        con.execute(sql, values)
    except sqlite3.IntegrityError as error:
        return str(error)
    return "done"
