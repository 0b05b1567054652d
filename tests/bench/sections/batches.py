"""Many jobs in one transaction against one by one, and finish with the next claim in one."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

from lease import jobs
from lease.model import Ticket
from tests.bench import files
from tests.bench.files import NOW, OWNER
from tests.bench.rounds import interleaved, timed
from tests.bench.scale import Scale
from tests.bench.sections.verbs import Deliveries
from tests.bench.table import Row
from tests.bench.targets import BATCH_OF_100, FUSED

_TTL_MS = 60_000


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure at DELETE + FULL, where a transaction has its price."""
    with ExitStack() as stack:

        def opened(name: str) -> sqlite3.Connection:
            return stack.enter_context(closing(files.opened(folder / f"{name}.db")))

        cases = [
            Deliveries(opened("one")),
            Fused(opened("fused"), 1),
            *(Batches(opened(f"many-{size}"), size) for size in scale.batches),
            *(Fused(opened(f"fused-{size}"), size) for size in scale.batches),
        ]
        samples = interleaved(cases, scale.rounds, scale.turns)
    yield Row("enqueue, one by one", samples.of("enqueue", 1e6))
    yield Row("claim + finish, one by one", samples.of("claim + finish", 1e6))
    yield Row(
        "finish_and_claim of one job",
        samples.of("fused 1", 1e6),
        ratios=samples.ratios("claim + finish", "fused 1"),
        to="x faster than claim + finish",
        target=FUSED,
    )
    for size in scale.batches:
        target = BATCH_OF_100 if size == scale.batches[0] else None
        for verb, single, title in (
            ("put", "enqueue", "enqueue_many"),
            ("deliver", "claim + finish", "claim_many + finish_many"),
            ("fused", "claim + finish", "finish_and_claim"),
        ):
            yield Row(
                f"{title} of {size:,}, a job",
                samples.of(f"{verb} {size}", 1e6),
                ratios=samples.ratios(single, f"{verb} {size}"),
                to=f"x faster than {single}, one by one",
                target=None if verb == "fused" else target,
            )


class Batches:
    """A batch of jobs after the other, from intake to done."""

    def __init__(self, con: sqlite3.Connection, size: int) -> None:
        self._con = con
        self._size = size
        self._first = count(0, size)

    def __call__(self) -> Mapping[str, float]:
        """Time the intake of a batch, and its claim and finish together."""
        con, size = self._con, self._size
        events = files.events(next(self._first), size)

        def deliver() -> None:
            tickets = jobs.claim_many(con, OWNER, NOW, size)
            jobs.finish_many(con, succeeded(tickets), NOW)

        return {
            f"put {size}": timed(lambda: jobs.enqueue_many(con, events, NOW, _TTL_MS)) / size,
            f"deliver {size}": timed(deliver) / size,
        }


class Fused:
    """Jobs in hand are finished in the transaction that claims as many new ones."""

    def __init__(self, con: sqlite3.Connection, size: int) -> None:
        self._con = con
        self._size = size
        self._first = count(0, size)
        self._fetch()
        self._tickets = jobs.claim_many(con, OWNER, NOW, size)

    def __call__(self) -> Mapping[str, float]:
        """Time one such transaction."""
        self._fetch()
        return {f"fused {self._size}": timed(self._deliver) / self._size}

    def _fetch(self) -> None:
        events = files.events(next(self._first), self._size)
        jobs.enqueue_many(self._con, events, NOW, _TTL_MS)

    def _deliver(self) -> None:
        _, self._tickets = jobs.finish_and_claim(
            self._con, succeeded(self._tickets), OWNER, NOW, self._size
        )
        assert len(self._tickets) == self._size


def succeeded(tickets: list[Ticket]) -> list[tuple[Ticket, str, int]]:
    """Return the results of sends that were all confirmed."""
    return [(ticket, "ok", 0) for ticket in tickets]
