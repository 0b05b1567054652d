"""Every state that a small world can reach by the real statements, and faults seeded in them."""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, nullcontext
from multiprocessing import get_context

import pytest

from lease.jobs import _redrive
from tests.proof.explorer import Broken, Explorer, explore
from tests.proof.faults import FAULTS, Fault, seeded
from tests.proof.rules import REASONS
from tests.proof.store import Store
from tests.proof.world import Intake, World

Tell = Callable[[object], None]

#: Steps from an empty queue.
DEPTH = 6
FAULT_DEPTH = 6
SOAK_STATES = 520_000

TINY = World(jobs=(Intake("j1", 1, 2, 1),), last_ms=3, jump_ms=2, most_redrives=1)
DEPTH_OF_ALL = 40

#: So that the two jobs have a leaf of the tree each, and the first one's is kept up to date.
LAST_SEQ = 62


@pytest.fixture
def store() -> Iterator[Store]:
    """A new queue in memory."""
    with closing(Store(LAST_SEQ)) as opened:
        yield opened


def test_explorer_finds_no_broken_rule(store: Store, tell: Tell) -> None:
    """In every state within six steps, every step of every verb keeps every rule."""
    explorer = Explorer(World(), store)

    explored = explorer.run(DEPTH)

    tell(f"explorer: {explored}")
    assert explored.states > 20_000
    found = {(job.status, job.reason) for rows in explorer.snapshots() for job in rows.book.jobs}
    assert found == {(status, reason) for status in REASONS for reason in REASONS[status]}


def test_explorer_finds_no_broken_rule_in_all_that_a_tiny_world_can_reach(
    store: Store, tell: Tell
) -> None:
    """With one job, one redrive and four instants no state is left unvisited."""
    explored = Explorer(TINY, store).run(DEPTH_OF_ALL)

    tell(f"explorer, one job: {explored}")
    assert explored.complete


@pytest.mark.soak
def test_explorer_finds_no_broken_rule_further_out(tell: Tell) -> None:
    """The same for half a million states of the single verbs, and one step on for all verbs."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        single = pool.submit(explore, World(batches=False), LAST_SEQ, 99, SOAK_STATES)
        every = pool.submit(explore, World(), LAST_SEQ, DEPTH + 1)

        tell(f"explorer, all verbs: {every.result()}")
        tell(f"explorer, single verbs: {single.result()}")
        assert single.result().states > 500_000


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_explorer_finds_seeded_fault(store: Store, fault: Fault) -> None:
    """One wrong statement breaks its rule, and a shortest trace shows how."""
    with seeded(fault, store.con), pytest.raises(Broken) as broken:
        Explorer(World(batches=fault.batch), store).run(FAULT_DEPTH)

    print(f"{fault.name} ({fault.statement}): {broken.value}")  # noqa: T201  (shown with -s)
    assert broken.value.rule == fault.rule


def test_explorer_finds_a_verb_without_its_transaction(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An audit row that a killed redrive leaves behind is seen."""
    monkeypatch.setattr(_redrive, "write_transaction", nullcontext)

    with pytest.raises(Broken) as broken:
        Explorer(World(batches=False), store).run(FAULT_DEPTH)

    assert broken.value.rule == "all_or_nothing"
