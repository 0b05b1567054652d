"""What must hold: the figures that a change may not worsen."""

from operator import ge, le
from typing import Literal, NamedTuple


class Target(NamedTuple):
    """A bound on a row's ratio, or on its value where it has no ratio."""

    name: str
    sense: Literal["<=", ">="]
    limit: float

    def __str__(self) -> str:
        """Show it as a table does."""
        return f"{self.sense} {self.limit:g}"

    def holds(self, measured: float) -> bool:
        """Return whether a measurement keeps the bound."""
        return {"<=": le, ">=": ge}[self.sense](measured, self.limit)


FLAT_CLAIM = Target("flat claim", "<=", 2)
SAME_PAGES = Target("same pages", "<=", 1)
FLAT_VERBS = Target("flat verbs", "<=", 2)
EXTRA_PAGES = Target("extra pages", "<=", 0.1)
NOTHING = Target("nothing", "<=", 0)
PROPORTIONAL_BURYING = Target("proportional burying", "<=", 1.5)
TWO_TRANSACTIONS = Target("two transactions", "<=", 1.25)
FUSED = Target("fused", ">=", 1.8)
PEER_AT_EQUAL_DURABILITY = Target("peer at equal durability", ">=", 1)
BATCH_OF_100 = Target("batch of 100", ">=", 30)
PEER_WITH_BACKLOG = Target("peer with backlog", ">=", 30)
FOUR_PROCESSES = Target("four processes", ">=", 0.9)
LEAST_SERVED = Target("least served", ">=", 0.8)
OPEN_CURRENT = Target("open current", "<=", 1.5)
IMPORT = Target("import", "<=", 1.6)
CONCURRENT_SENDS = Target("concurrent sends", ">=", 20)
BOUNDED_MEMORY = Target("bounded memory", "<=", 1.25)
