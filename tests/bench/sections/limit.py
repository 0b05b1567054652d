"""What SQLite itself can do with a file's settings, whatever a queue makes of it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bench.floor import Floor
from tests.bench.rounds import Case, interleaved, timed
from tests.bench.scale import Scale
from tests.bench.table import Row

_SETTINGS = (("DELETE", "FULL"), ("DELETE", "OFF"), ("WAL", "FULL"), ("WAL", "NORMAL"))
_ROWS = (1, 100, 1_000)


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure the smallest transactions."""
    floors = {
        setting: Floor(folder / f"limit-{'-'.join(setting)}.db", *setting) for setting in _SETTINGS
    }

    def case(setting: tuple[str, str], rows: int) -> Case:
        def change() -> Mapping[str, float]:
            return {f"{setting} {rows}": timed(lambda: floors[setting].change(rows))}

        return change

    cases = [case(setting, rows) for setting in _SETTINGS for rows in _ROWS]
    samples = interleaved(cases, scale.rounds, scale.turns)
    for setting in _SETTINGS:
        for rows in _ROWS:
            yield Row(
                f"{' + '.join(setting)}: one transaction, rows changed: {rows:,}",
                samples.of(f"{setting} {rows}", 1e6),
                ratios=samples.ratios(f"{setting} {rows}", f"{_SETTINGS[0]} 1"),
                to="DELETE + FULL, 1 row",
            )
    for floor in floors.values():
        floor.con.close()
