"""Every state that a small world can reach by the real statements, and faults seeded in them."""

from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext

import pytest

from lease.jobs import _redrive
from tests.proof.explorer import Broken, Explorer
from tests.proof.faults import FAULTS, Fault, seeded
from tests.proof.rules import REASONS
from tests.proof.store import Store
from tests.proof.world import World

Tell = Callable[[object], None]

#: Steps from an empty queue; a seeded fault is found much earlier.
DEPTH = 8
SOAK_DEPTH = 10


@pytest.fixture
def store() -> Iterator[Store]:
    """A new queue in memory."""
    with closing(Store()) as opened:
        yield opened


def test_explorer_finds_no_broken_rule(store: Store, tell: Tell) -> None:
    """In every state within eight steps, every step of every verb keeps every rule."""
    explorer = Explorer(World(), store)

    explored = explorer.run(DEPTH)

    tell(f"explorer: {explored}")
    assert explored.states > 20_000
    found = {(job.status, job.reason) for book in explorer.books() for job in book.jobs}
    assert found == {(status, reason) for status in REASONS for reason in REASONS[status]}


@pytest.mark.soak
def test_explorer_finds_no_broken_rule_further_out(store: Store, tell: Tell) -> None:
    """The same, two steps further."""
    explored = Explorer(World(), store).run(SOAK_DEPTH)

    tell(f"explorer: {explored}")
    assert explored.states > 500_000


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_explorer_finds_seeded_fault(store: Store, fault: Fault) -> None:
    """One wrong statement breaks its rule, and a shortest trace shows how."""
    with seeded(fault), pytest.raises(Broken) as broken:
        Explorer(World(), store).run(DEPTH)

    print(f"{fault.name} ({fault.statement}): {broken.value}")  # noqa: T201  (shown with -s)
    assert broken.value.rule == fault.rule


def test_explorer_finds_a_verb_without_its_transaction(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An audit row that a killed redrive leaves behind is seen."""
    monkeypatch.setattr(_redrive, "write_transaction", nullcontext)

    with pytest.raises(Broken) as broken:
        Explorer(World(), store).run(DEPTH)

    assert broken.value.rule == "all_or_nothing"
