"""Every verb killed at every boundary: all or nothing."""

from collections.abc import Callable

import pytest

from lease import jobs
from tests.proof.crash_table import Found, run
from tests.proof.scenarios import SCENARIOS
from tests.support.model import VERBS


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Found]:
    """The whole matrix, once."""
    return run(tmp_path_factory.mktemp("matrix"))


def test_killed_verb_leaves_all_or_nothing(
    found: list[Found], tell: Callable[[object], None]
) -> None:
    """A fresh process finds the rows of the last COMMIT that was passed, whole."""
    tell(f"crash matrix: {len(found)} kills in {len(SCENARIOS)} scenarios")

    assert [each for each in found if each.after != each.expected] == []


def test_matrix_kills_on_both_sides_of_every_commit(found: list[Found]) -> None:
    """Each scenario was killed before its first commit and after its last."""
    for scenario in SCENARIOS:
        mine = [each for each in found if each.kill.scenario == scenario.name]

        assert mine[0].after == scenario.books()[0] != scenario.books()[-1] == mine[-1].after


def test_matrix_has_every_verb() -> None:
    """No verb that writes jobs is left out of the matrix, or of the model."""
    others = {"create_queue", "list_jobs", "next_due", "open_queue", "retry_delay", "run_file"}
    others |= {"stats", "tree_check", "tree_rebuild"}
    verbs = {name for name in jobs.__all__ if name.islower()} - others

    assert {scenario.step.verb for scenario in SCENARIOS} == verbs
    assert set(VERBS) == verbs - {"run_once"}
