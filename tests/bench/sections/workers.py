"""Worker processes on one file: what they deliver together, and how evenly they are served."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path

from tests.bench import files
from tests.bench.rounds import Samples, interleaved
from tests.bench.scale import Scale
from tests.bench.started import together
from tests.bench.table import Row
from tests.bench.targets import FOUR_PROCESSES, LEAST_SERVED, NOTHING

_PROCESSES = 4
_SEND_S = 0.005


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Let one worker run, then four, on a queue that never runs dry."""
    numbers = count()

    def workers(processes: int, send_s: float) -> Mapping[str, float]:
        path = folder / f"workers-{next(numbers)}.db"
        with closing(files.opened(path, synchronous="OFF")) as con:
            files.fill(con, files.PLENTY, int(scale.seconds * 10_000) + 200)
        said = together(
            "work",
            [(str(path), f"worker-{number}", scale.seconds, send_s) for number in range(processes)],
        )
        path.unlink()
        served, window = while_all_worked([each["done"] for each in said])
        return {
            f"{processes} rate": sum(served) / (window or scale.seconds),
            f"{processes} share": min(served) / max(*served, 1),
            f"{processes} locked": sum(each["locked"] for each in said),
        }

    def measured(send_s: float) -> Samples:
        cases = (partial(workers, 1, send_s), partial(workers, _PROCESSES, send_s))
        return interleaved(cases, scale.rounds)

    # A send that takes no time is the worst case: all that the workers do is wait for each other.
    samples, slow = measured(0), measured(_SEND_S)
    yield Row("1 worker process", samples.of("1 rate"), "jobs/s")
    yield Row(
        f"{_PROCESSES} worker processes, {_SEND_S * 1000:g} ms a send",
        slow.of(f"{_PROCESSES} rate"),
        "jobs/s",
        slow.ratios(f"{_PROCESSES} rate", "1 rate"),
        "1 worker process, likewise",
        FOUR_PROCESSES,
    )
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


def while_all_worked(done: list[list[float]]) -> tuple[list[int], float]:
    """Count each worker's jobs while all were at it: starting takes one longer than another.

    Args:
        done: the instants at which each worker was done with a job, in seconds.

    Returns:
        How many each did, and in how many seconds.
    """
    if not all(done):
        return [len(each) for each in done], 0
    start, end = max(each[0] for each in done), min(each[-1] for each in done)
    served = [sum(start <= instant <= end for instant in each) for each in done]
    return served, max(0, end - start)
