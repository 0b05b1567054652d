"""Each verb by itself, durable and with synchronous off, against the smallest transaction."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path

from lease import jobs
from tests.bench import files
from tests.bench.durability import DELETE_FULL, DELETE_OFF, WAL_FULL, Setting
from tests.bench.files import NOW, OWNER
from tests.bench.floor import Floor
from tests.bench.rounds import interleaved, timed
from tests.bench.scale import Scale
from tests.bench.table import Row
from tests.bench.targets import TWO_TRANSACTIONS

_VERBS = ("enqueue", "claim", "renew", "finish", "redrive")


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure the verbs durable, by either journal, and with synchronous off."""
    for setting in (DELETE_FULL, WAL_FULL, DELETE_OFF):
        yield from _at(setting, scale, folder)


def _at(setting: Setting, scale: Scale, folder: Path) -> Iterator[Row]:
    turns, chunk = (1, scale.chunk) if setting == DELETE_OFF else (scale.turns, 1)
    floor = Floor(folder / f"floor {setting}.db", *setting)
    with (
        closing(floor.con),
        closing(files.opened(folder / f"plain {setting}.db", *setting)) as plain,
        closing(files.opened(folder / f"verbs {setting}.db", *setting)) as con,
    ):
        cases = (floor.twice, Deliveries(plain, " before it"), Verbs(con))
        samples = interleaved(cases, scale.rounds, turns, chunk)
    yield Row(f"the smallest transaction, {setting}", samples.of("transaction", 1e6))
    for verb in _VERBS:
        yield Row(
            f"{verb}, {setting}",
            samples.of(verb, 1e6),
            ratios=samples.ratios(verb, "transaction"),
            to="the smallest transaction",
        )
    yield Row(
        f"claim + finish, {setting}",
        samples.of("claim + finish", 1e6),
        ratios=samples.ratios("claim + finish", "two transactions"),
        to="two of the smallest",
        target=TWO_TRANSACTIONS if setting == DELETE_FULL else None,
    )


class Deliveries:
    """One job after the other, from intake to done, each verb a transaction of its own."""

    def __init__(self, con: sqlite3.Connection, suffix: str = "") -> None:
        self._con = con
        self._suffix = suffix
        self._numbers = count()

    def __call__(self) -> Mapping[str, float]:
        """Time the intake, and the claim and the finish together."""
        con = self._con
        (event,) = files.events(next(self._numbers), 1)

        def deliver() -> None:
            jobs.finish(con, jobs.claim(con, OWNER, NOW), "ok", NOW)

        return {
            f"enqueue{self._suffix}": timed(lambda: jobs.enqueue(con, event, NOW, 60_000)),
            "claim + finish": timed(deliver),
        }


class Verbs:
    """Every verb in turn on one job, which is buried, redriven and done in the end."""

    def __init__(self, con: sqlite3.Connection, suffix: str = "") -> None:
        self._con = con
        self._suffix = suffix
        self._numbers = count()

    def __call__(self) -> Mapping[str, float]:
        """Time each verb once."""
        con = self._con
        (event,) = files.events(next(self._numbers), 1)
        ticket: dict = {}
        times = {
            "enqueue": timed(lambda: jobs.enqueue(con, event, NOW, 60_000)),
            "claim": timed(lambda: ticket.update(jobs.claim(con, OWNER, NOW))),
            "renew": timed(lambda: ticket.update(jobs.renew(con, dict(ticket), NOW, 30_000))),
            "finish": timed(lambda: jobs.finish(con, ticket, "permanent", NOW)),
            "redrive": timed(lambda: jobs.redrive(con, ticket["id"], NOW, 60_000, "bench")),
        }
        jobs.finish(con, jobs.claim(con, OWNER, NOW), "ok", NOW)
        return {f"{verb}{self._suffix}": taken for verb, taken in times.items()}
