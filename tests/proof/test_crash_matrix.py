"""Every verb killed at every boundary: all or nothing, and the README shows it."""

from collections.abc import Callable
from inspect import isfunction, signature

import pytest

from lease import jobs
from tests.proof.crash_table import Found, markdown, run, shown
from tests.proof.scenarios import SCENARIOS
from tests.support.model import VERBS
from tests.support.processes import ROOT


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
    """No verb that has hooks is left out of the matrix, or of the model."""
    hooked = {
        name
        for name, verb in vars(jobs).items()
        if isfunction(verb) and "fault" in signature(verb).parameters
    }

    assert {scenario.step.verb for scenario in SCENARIOS} == hooked | {"enqueue", "run_once"}
    assert set(VERBS) == hooked | {"enqueue"}


def test_readme_shows_the_matrix(found: list[Found]) -> None:
    """The table in the README is the one that this run gives."""
    readme = ROOT / "README.md"

    assert shown(readme) == markdown(found), f"python -m tests.proof.crash_table {readme.name}"
