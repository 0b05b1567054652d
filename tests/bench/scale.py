"""How much is measured: enough to believe, or just enough to see that everything runs."""

from typing import NamedTuple


class Scale(NamedTuple):
    """The sizes of a run.

    Args:
        rounds: how many values every figure is the median of.
        turns: how often a round goes through its cases, where each call waits for the disk.
        chunk: calls in a row, where microseconds count.
        sizes: rows in the tables whose cost is plotted, smallest first.
        batches: jobs in a transaction.
        backlog: jobs that wait while a peer claims.
        seconds: how long worker processes run.
        jobs: jobs that a worker with a slow sender delivers.
        history: jobs that are done in a file that has been in use.
        processes: how often a whole process is started in a round.
    """

    rounds: int
    turns: int
    chunk: int
    sizes: tuple[int, ...]
    batches: tuple[int, ...]
    backlog: int
    seconds: float
    jobs: int
    history: int
    processes: int


FULL = Scale(
    rounds=7,
    turns=20,
    chunk=40,
    sizes=(1_000, 10_000, 100_000, 1_000_000),
    batches=(100, 1_000),
    backlog=1_000_000,
    seconds=5.0,
    jobs=640,
    history=10_000,
    processes=8,
)

QUICK = Scale(
    rounds=1,
    turns=1,
    chunk=2,
    sizes=(100, 300),
    batches=(10, 20),
    backlog=100,
    seconds=0.05,
    jobs=4,
    history=5,
    processes=1,
)
