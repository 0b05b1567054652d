"""The memory of a worker: the same on a small queue and on a large one."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.bench import files
from tests.bench.rounds import interleaved
from tests.bench.scale import Scale
from tests.bench.started import child
from tests.bench.table import Row
from tests.bench.targets import BOUNDED_MEMORY


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Weigh a worker that delivers some jobs of a short queue, and of a long one."""
    few = 10 * scale.jobs
    many = max(scale.backlog, 2 * few)
    for size in (few, many):
        with closing(files.opened(folder / f"memory-{size}.db", synchronous="OFF")) as con:
            files.fill(con, files.PLENTY, size)

    def weigh(size: int) -> dict[str, float]:
        said = child("deliver_and_weigh", str(folder / f"memory-{size}.db"), scale.jobs)
        return {str(size): said["peak"]}

    samples = interleaved((lambda: weigh(few), lambda: weigh(many)), scale.rounds)
    yield Row(f"worker on {few:,} jobs, at its peak", samples.of(str(few)), "MiB")
    yield Row(
        f"worker on {many:,} jobs, at its peak",
        samples.of(str(many)),
        "MiB",
        samples.ratios(str(many), str(few)),
        f"on {few:,} jobs",
        BOUNDED_MEMORY,
    )
