"""What a claim costs against the size of its table, in every shape; synchronous off."""

from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from statistics import median
from time import perf_counter

from lease import jobs
from lease.dispatcher import Dispatcher
from tests.bench import files
from tests.bench.bare import Bare
from tests.bench.files import NOW, OWNER, Shape
from tests.bench.rounds import interleaved, timed
from tests.bench.scale import Scale
from tests.bench.table import Row
from tests.bench.targets import FLAT_CLAIM, NOTHING, PROPORTIONAL_BURYING


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure claims, idle polls, and the burying of many rows."""
    largest: dict[str, Row] = {}
    for number, shape in enumerate(files.SHAPES):
        place = folder / f"shapes-{number}"
        place.mkdir()
        for row in _claims(scale, place, shape):
            yield row
            if row.size == scale.sizes[-1]:
                largest[row.what] = row
    yield from _naive(scale, folder)
    name, worst = max(largest.items(), key=lambda each: median(each[1].ratios))
    yield worst._replace(
        what=f"claim in the worst shape of {scale.sizes[-1]:,} rows",
        target=FLAT_CLAIM,
        note=f"({name.partition(': ')[2]})",
        size=None,
    )
    yield from _idle(scale, folder)
    yield from _burying(scale, folder)


class Claims:
    """Claims from one table; a job that is the only ready one becomes ready again."""

    def __init__(self, path: Path, shape: Shape, size: int) -> None:
        self.con = files.opened(path, synchronous="OFF")
        files.fill(self.con, shape, size)
        self._name = str(size)
        self._outcome = "ok" if shape.claimable else "retry"

    def __call__(self) -> Mapping[str, float]:
        """Time one claim; finish it apart from that."""
        start = perf_counter()
        ticket = jobs.claim(self.con, OWNER, NOW)
        taken = perf_counter() - start
        assert ticket is not None
        assert jobs.finish(self.con, ticket, self._outcome, NOW)
        return {self._name: taken}


def _claims(scale: Scale, place: Path, shape: Shape) -> Iterator[Row]:
    cases = [Claims(place / f"{size}.db", shape, size) for size in scale.sizes]
    cases.append(Claims(place / "empty.db", files.EMPTY, 0))
    # The smallest table of the mixed shape must not run dry.
    chunk = max(1, min(scale.chunk, scale.sizes[0] // 4 // scale.rounds))
    samples = interleaved(cases, scale.rounds, chunk=chunk)
    for size in scale.sizes:
        yield Row(
            f"claim, {size:,} rows: {shape.name}",
            samples.of(str(size), 1e6),
            ratios=samples.ratios(str(size), "0"),
            to="an empty queue",
            size=size,
        )
    for case in cases:
        case.con.close()
    for file in place.iterdir():
        file.unlink()


def _naive(scale: Scale, folder: Path) -> Iterator[Row]:
    """Claim from done jobs without any index, for the contrast."""
    for size in scale.sizes:
        bare = Bare(folder / f"naive-{size}.db", "OFF")
        with closing(bare.con):
            files.fill(bare.con, files.DONE, size)
            taken = []
            for _ in range(scale.rounds):
                start = perf_counter()
                marker = bare.claim()
                taken.append((perf_counter() - start) * 1e6)
                bare.finish(marker, "pending")
        yield Row(f"claim, {size:,} rows: no index at all", taken, size=size)


def _idle(scale: Scale, folder: Path) -> Iterator[Row]:
    """Look at a queue in which nothing is ready; then do so while somebody else writes."""
    path, size = folder / "idle.db", scale.sizes[-1]
    with closing(files.opened(path)) as con, closing(files.opened(folder / "busy.db")) as other:
        files.fill(con, files.IDLE, size)
        files.fill(other, files.EMPTY, 0)
        before = path.stat().st_mtime_ns, con.total_changes

        def poll() -> Mapping[str, float]:
            return {"idle": timed(lambda: jobs.claim(con, OWNER, NOW))}

        def claim() -> Mapping[str, float]:
            start = perf_counter()
            ticket = jobs.claim(other, OWNER, NOW)
            taken = perf_counter() - start
            assert ticket is not None
            jobs.finish(other, ticket, "retry", NOW)
            return {"claim": taken}

        samples = interleaved((poll, claim), scale.rounds, chunk=scale.chunk)
        wrote = path.stat().st_mtime_ns, con.total_changes
        yield Row(
            f"claim of nothing, {size:,} delayed rows, DELETE + FULL",
            samples.of("idle", 1e6),
            ratios=samples.ratios("idle", "claim"),
            to="a claim of a job",
        )
        yield Row(
            "claim of nothing: polls that wrote to the file",
            [float(wrote != before)],
            "",
            target=NOTHING,
        )
        with closing(files.opened(path)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            yield Row(
                "worker's idle look: write locks it waited for",
                [float(_looks_in_vain(path))],
                "",
                target=NOTHING,
            )
            writer.execute("ROLLBACK")


def _looks_in_vain(path: Path) -> int:
    """Let a worker look once while another connection holds the write lock; count its waits."""
    waits: list[object] = []

    def note(trouble: object) -> None:
        waits.append(trouble)
        dispatcher.stop()

    dispatcher = Dispatcher(
        path, lambda event: True, owner=OWNER, clock=lambda: NOW, on_trouble=note
    )
    with suppress(FileNotFoundError):
        dispatcher.run("once")
    return len(waits)


def _burying(scale: Scale, folder: Path) -> Iterator[Row]:
    """Sweep tables of overdue jobs: the cost is that of the rows that are buried."""
    small, large = scale.sizes[-3:-1] if len(scale.sizes) > 2 else scale.sizes
    cons = {
        size: files.opened(folder / f"bury-{size}.db", synchronous="OFF") for size in (small, large)
    }
    for size, con in cons.items():
        files.fill(con, files.OVERDUE, size)

    def sweep(size: int) -> Mapping[str, float]:
        con = cons[size]
        start = perf_counter()
        ticket = jobs.claim(con, OWNER, NOW)
        taken = perf_counter() - start
        assert ticket is not None
        jobs.finish(con, ticket, "retry", NOW)
        con.execute("UPDATE jobs SET status = 'pending', reason = NULL WHERE status = 'dead'")
        return {str(size): taken / size}

    samples = interleaved((lambda: sweep(small), lambda: sweep(large)), scale.rounds)
    for size in (small, large):
        title = f"first claim that buries {size:,} overdue rows, a row"
        yield Row(title, samples.of(str(size), 1e6))
    yield Row(
        f"burying {large:,} rows, a row",
        samples.of(str(large), 1e6),
        ratios=samples.ratios(str(large), str(small)),
        to=f"burying {small:,} rows, a row",
        target=PROPORTIONAL_BURYING,
    )
    for con in cons.values():
        con.close()
