"""Importing, measured as whole processes: what a short command pays before it does anything."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bench.rounds import Case, interleaved, timed
from tests.bench.scale import Scale
from tests.bench.started import interpreter
from tests.bench.table import Row
from tests.bench.targets import IMPORT

_LEAST = "import sqlite3, json, re"
_OURS = ("import lease.worker", "import lease.dispatcher", "import lease.cli")


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Start interpreters that import and end."""

    def case(code: str) -> Case:
        def start() -> Mapping[str, float]:
            return {code: timed(lambda: interpreter(code))}

        return start

    samples = interleaved([case(code) for code in (_LEAST, *_OURS)], scale.rounds, scale.processes)
    yield Row(f"python -c '{_LEAST}'", samples.of(_LEAST, 1e3), "ms")
    for code in _OURS:
        yield Row(
            f"python -c '{code}'",
            samples.of(code, 1e3),
            "ms",
            samples.ratios(code, _LEAST),
            _LEAST,
            IMPORT if code == _OURS[0] else None,
        )
