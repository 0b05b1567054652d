"""A worker whose receiver takes its time: one send at a time, and many."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path

from lease.dispatcher import Dispatcher
from tests.bench import files
from tests.bench.rounds import interleaved, timed
from tests.bench.scale import Scale
from tests.bench.table import Row
from tests.bench.targets import CONCURRENT_SENDS

_ANSWER_S = 0.020
_MANY = 32


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Deliver with a sender that answers after 20 ms."""
    numbers = count()

    def deliver(concurrency: int) -> Mapping[str, float]:
        path = folder / f"sender-{next(numbers)}.db"
        jobs_sent = max(2, scale.jobs * concurrency // _MANY)
        with closing(files.opened(path, synchronous="OFF")) as con:
            files.fill(con, files.PLENTY, jobs_sent)
        dispatcher = Dispatcher(path, _slow, owner="sender", concurrency=concurrency)
        taken = timed(lambda: dispatcher.run("drained"))
        path.unlink()
        return {str(concurrency): jobs_sent / taken}

    samples = interleaved((lambda: deliver(1), lambda: deliver(_MANY)), scale.rounds)
    yield Row("sender of 20 ms, concurrency 1", samples.of("1"), "jobs/s")
    yield Row(
        f"sender of 20 ms, concurrency {_MANY}",
        samples.of(str(_MANY)),
        "jobs/s",
        samples.ratios(str(_MANY), "1"),
        "concurrency 1",
        CONCURRENT_SENDS,
    )


def _slow(_: object) -> bool:
    time.sleep(_ANSWER_S)
    return True
