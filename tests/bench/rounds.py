"""Interleaved rounds: every case has its turn in each, so that a busy machine hits all alike.

Times drift several-fold within minutes on a shared machine. What holds is the ratio of two cases
inside one round; hence samples are kept a round each, and ratios are taken round by round.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from statistics import median
from time import perf_counter

#: Does one operation and says what it took, in seconds, or counted, by name.
Case = Callable[[], Mapping[str, float]]


class Samples:
    """What was measured, one value a round."""

    def __init__(self, taken: Mapping[str, list[float]]) -> None:
        self._taken = taken

    def __contains__(self, name: str) -> bool:
        """Return whether anything was measured under a name."""
        return name in self._taken

    def __iter__(self) -> Iterator[str]:
        """Yield the names under which something was measured."""
        return iter(self._taken)

    def of(self, name: str, scale: float = 1.0) -> list[float]:
        """Return a name's values, each multiplied."""
        return [value * scale for value in self._taken[name]]

    def ratios(self, name: str, against: str, scale: float = 1.0) -> list[float]:
        """Return how many times `against` each round's value is, multiplied."""
        pairs = zip(self._taken[name], self._taken[against], strict=True)
        return [scale * value / other for value, other in pairs]


def interleaved(
    cases: Iterable[Case], rounds: int, turns: int = 1, chunk: int = 1, *, mixed: bool = False
) -> Samples:
    """Measure cases side by side.

    Args:
        cases: each is called equally often; no two may use the same names.
        rounds: how many values each name gets, each the median of a round.
        turns: how often a round goes through all cases.
        chunk: how often a case is called in a row, which keeps the processor's caches warm where
            microseconds count.
        mixed: whether every turn has an order of its own, where it matters in whose wake a case
            comes.
    """
    cases = list(cases)
    order = Random(len(cases))
    taken: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        found: dict[str, list[float]] = defaultdict(list)
        for _ in range(turns):
            if mixed:
                order.shuffle(cases)
            for case in cases:
                for _ in range(chunk):
                    for name, value in case().items():
                        found[name].append(value)
        for name, values in found.items():
            taken[name].append(median(values))
    return Samples(dict(taken))


def joined(parts: Iterable[Samples]) -> Samples:
    """Return the rounds of several measurements of the same names as those of one."""
    taken: dict[str, list[float]] = defaultdict(list)
    for part in parts:
        for name in part:
            taken[name] += part.of(name)
    return Samples(taken)


def timed(step: Callable[[], object]) -> float:
    """Return how long a step takes, in seconds."""
    start = perf_counter()
    step()
    return perf_counter() - start
