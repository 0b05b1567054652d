"""What every other verb costs on a large table, against a small one; synchronous off."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from lease import jobs
from tests.bench import files
from tests.bench.rounds import Case, interleaved, timed
from tests.bench.scale import Scale
from tests.bench.sections.verbs import Verbs
from tests.bench.table import Row
from tests.bench.targets import FLAT_VERBS

_CHANGES = ("enqueue", "claim", "renew", "finish", "redrive")
_LOOKS = ("next_due", "stats")


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure on tables of mixed shape, of the smallest and of the largest size."""
    small, large = scale.sizes[0], scale.sizes[-1]
    with (
        closing(files.opened(folder / "small.db", synchronous="OFF")) as few,
        closing(files.opened(folder / "large.db", synchronous="OFF")) as many,
    ):
        files.fill(few, files.MIXED, small)
        files.fill(many, files.MIXED, large)

        def looks(con: sqlite3.Connection, suffix: str) -> Case:
            def case() -> Mapping[str, float]:
                return {
                    f"next_due{suffix}": timed(lambda: jobs.next_due(con)),
                    f"stats{suffix}": timed(lambda: jobs.stats(con)),
                }

            return case

        changes = (Verbs(few, " small"), Verbs(many, " large"))
        changed = interleaved(changes, scale.rounds, chunk=scale.chunk)
        looked = interleaved((looks(few, " small"), looks(many, " large")), scale.rounds)
    for verbs, samples in ((_CHANGES, changed), (_LOOKS, looked)):
        for verb in verbs:
            yield Row(
                f"{verb}, {large:,} mixed rows",
                samples.of(f"{verb} large", 1e6),
                ratios=samples.ratios(f"{verb} large", f"{verb} small"),
                to=f"{small:,} rows",
                target=FLAT_VERBS,
            )
