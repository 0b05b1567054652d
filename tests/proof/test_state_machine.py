"""The queue on every dialect against the model: random steps, and traces kept as data."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import get_state_machine_test

from tests.proof.dialects import DIALECTS
from tests.proof.faults import FAULTS, seeded
from tests.proof.machine import Open, QueueMachine
from tests.proof.steps import File, Model, Recorded, Step

TRACES = sorted(Path(__file__).parent.joinpath("traces").glob("*.json"))


@pytest.fixture(params=list(DIALECTS))
def dialect(request: pytest.FixtureRequest) -> Open:
    """One database after the other."""
    return DIALECTS[request.param]


def drive(
    dialect: Open, seed: int, examples: int, steps: int, phases: tuple[Phase, ...] = tuple(Phase)
) -> None:
    class Machine(QueueMachine):
        def __init__(self) -> None:
            super().__init__(dialect)

    run: Callable[[], None] = get_state_machine_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )
    hypothesis.seed(seed)(run)()


def test_queue_does_as_the_model(dialect: Open, seed: int) -> None:
    """Whatever the steps, every answer and every row is the model's, and the trace replays."""
    drive(dialect, seed, examples=150, steps=50)


@pytest.mark.soak
def test_queue_does_as_the_model_for_long(dialect: Open, seed: int) -> None:
    """The same, with many more and longer histories."""
    drive(dialect, seed, examples=300, steps=100)


def test_queue_that_differs_from_the_model_is_found(dialect: Open, seed: int) -> None:
    """A redrive that starts the tokens anew does not get past the machine."""
    (fault,) = [each for each in FAULTS if each.name == "a redrive starts the tokens anew"]

    with dialect() as con, seeded(fault, con), pytest.raises(AssertionError):
        drive(dialect, seed, examples=150, steps=50, phases=(Phase.generate,))


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.stem)
def test_trace_replays(dialect: Open, trace: Path) -> None:
    """A recorded trace gives the same answers and rows on the dialect as on the model."""
    steps = [Step(*step) for step in json.loads(trace.read_text(encoding="utf-8"))["steps"]]
    model = Recorded(Model())
    with dialect() as con:
        real = Recorded(File(con))

        assert [real.take(step) for step in steps] == [model.take(step) for step in steps]


def test_trace_ends_as_it_says() -> None:
    """Each recorded trace states its last answer, so that the model cannot drift with the file."""
    for trace in TRACES:
        content: dict[str, Any] = json.loads(trace.read_text(encoding="utf-8"))
        model = Recorded(Model())
        answers = [model.take(Step(*step))[0] for step in content["steps"]]

        assert json.loads(json.dumps(answers[-1])) == content["last_answer"], trace.stem
