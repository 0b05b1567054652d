"""The database that the explorer writes and reads: exact, tables kept by triggers included."""

from contextlib import closing

from tests.proof.explorer import Explorer
from tests.proof.store import Store
from tests.proof.world import World


def test_store_goes_back_exactly() -> None:
    """From any state to any other, every row of every table is the one that was read."""
    with closing(Store(62)) as store:
        explorer = Explorer(World(), store)
        explorer.run(4)
        snapshots = explorer.snapshots()

        for here, there in zip(snapshots, reversed(snapshots), strict=True):
            store.go(here)
            store.go(there)

            assert store.read() == there
