"""Worker processes on one file: what they deliver together, and how evenly they are served."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path

from tests.bench import files
from tests.bench.rounds import interleaved
from tests.bench.scale import Scale
from tests.bench.started import together
from tests.bench.table import Row
from tests.bench.targets import FOUR_PROCESSES, LEAST_SERVED, NOTHING

_PROCESSES = 4


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Let one worker run, then four, on a queue that never runs dry."""
    numbers = count()

    def workers(processes: int) -> Mapping[str, float]:
        path = folder / f"workers-{next(numbers)}.db"
        with closing(files.opened(path, synchronous="OFF")) as con:
            files.fill(con, files.PLENTY, int(scale.seconds * 25_000) + 200)
        said = together(
            "work",
            [(str(path), f"worker-{number}", scale.seconds) for number in range(processes)],
        )
        done = [each["done"] for each in said]
        path.unlink()
        return {
            f"{processes} rate": sum(each["done"] / each["seconds"] for each in said),
            f"{processes} share": min(done) / max(*done, 1),
            f"{processes} locked": sum(each["locked"] for each in said),
        }

    samples = interleaved((lambda: workers(1), lambda: workers(_PROCESSES)), scale.rounds)
    yield Row("1 worker process", samples.of("1 rate"), "jobs/s")
    yield Row(
        f"{_PROCESSES} worker processes",
        samples.of(f"{_PROCESSES} rate"),
        "jobs/s",
        samples.ratios(f"{_PROCESSES} rate", "1 rate"),
        "1 worker process",
        FOUR_PROCESSES,
    )
    yield Row(
        f"{_PROCESSES} worker processes: least served against best served",
        samples.of(f"{_PROCESSES} share"),
        "",
        target=LEAST_SERVED,
    )
    yield Row(
        f"{_PROCESSES} worker processes: locks that a worker had to report",
        samples.of(f"{_PROCESSES} locked"),
        "",
        target=NOTHING,
    )
