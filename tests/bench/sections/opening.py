"""Opening a queue: a current file, again and again and as the first thing a process does."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path

from lease import jobs
from tests.bench import files
from tests.bench.floor import plain_open
from tests.bench.rounds import interleaved, timed
from tests.bench.scale import Scale
from tests.bench.started import child
from tests.bench.table import Row
from tests.bench.targets import OPEN_CURRENT


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Open hot and cold, and make new files."""
    path = folder / "open.db"
    with closing(files.opened(path)) as con:
        files.fill(con, files.READY, 1_000 if scale.chunk > 2 else 10)
    numbers = count()

    def plain() -> Mapping[str, float]:
        return {"plain": timed(lambda: plain_open(path))}

    def ours() -> Mapping[str, float]:
        return {"ours": timed(lambda: jobs.open_queue(path).close())}

    def new() -> Mapping[str, float]:
        fresh = folder / f"open-{next(numbers)}.db"
        return {"new": timed(lambda: jobs.open_queue(fresh).close())}

    hot = interleaved((plain, ours), scale.rounds, scale.turns, scale.chunk)
    made = interleaved((new,), scale.rounds)
    first = interleaved(
        (lambda: child("open_plain", str(path)), lambda: child("open_first", str(path))),
        scale.rounds,
        scale.processes,
    )
    yield Row("plain connect, two pragmas, one read, close", hot.of("plain", 1e6))
    yield Row(
        "open_queue and close, current file",
        hot.of("ours", 1e6),
        ratios=hot.ratios("ours", "plain"),
        to="plain connect",
        target=OPEN_CURRENT,
    )
    yield Row(
        "open_queue and close, current file, first in its process",
        first.of("ours", 1e6),
        ratios=first.ratios("ours", "plain"),
        to="plain connect, likewise",
    )
    yield Row("open_queue and close, new file", made.of("new", 1e6))
