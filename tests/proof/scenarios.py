"""One call of each verb on each of its paths, with the steps that lead up to it."""

from typing import Any, NamedTuple

from tests.proof.steps import Model, Recorded, Step
from tests.support.model import Book


def _enqueue(job_id: str, max_attempts: int = 2) -> Step:
    event = {"id": job_id, "qty": 1}
    return Step(
        "enqueue", {"event": event, "now_ms": 0, "ttl_ms": 100, "max_attempts": max_attempts}
    )


def _claim(owner: str, now_ms: int) -> Step:
    return Step("claim", {"owner": owner, "now_ms": now_ms, "lease_ms": 10})


def _finish(outcome: str, issued: int = 0) -> Step:
    return Step(
        "finish",
        {"ticket": {"issued": issued}, "outcome": outcome, "now_ms": 5, "delay_ms": 10},
    )


class Scenario(NamedTuple):
    """A verb about to be killed."""

    name: str
    before: tuple[Step, ...]
    step: Step
    #: What the verb commits, one step of the model each, where that is not the step itself.
    commits: tuple[Step, ...] = ()

    def arguments(self) -> dict[str, Any]:
        """Return the verb's arguments with its tickets spelled out."""
        model = self._prepared()
        arguments: dict[str, Any] = model.spelled_out(self.step.arguments)
        return arguments

    def books(self) -> list[Book]:
        """Return all rows before the verb and after each of its commits."""
        model = self._prepared()
        return [model.book(), *(model.take(step)[1] for step in self.commits or (self.step,))]

    def _prepared(self) -> Recorded:
        model = Recorded(Model())
        for step in self.before:
            model.take(step)
        return model


_HELD = (_enqueue("j1"), _claim("a", 0))
_CLAIM_TWO = Step("claim_many", {"owner": "a", "now_ms": 0, "max_jobs": 2, "lease_ms": 10})
_OK = [{"issued": 0}, "ok", 0]
_RETRY = [{"issued": 1}, "retry", 10]
_BURY_TWO = Step(
    "finish_many",
    {"results": [[{"issued": number}, "permanent", 0] for number in (0, 1)], "now_ms": 5},
)
_RUN = Step("run_once", {"owner": "a", "jitter": 0.5, "lease_ms": 10})

SCENARIOS = (
    Scenario("`enqueue`, a new job", (), _enqueue("j1")),
    Scenario("`claim`, a pending job", (_enqueue("j1"),), _claim("a", 0)),
    Scenario("`claim`, a lease that has ended", _HELD, _claim("b", 10)),
    Scenario(
        "`claim`, one job buried and one leased",
        (_enqueue("j1", 1), _claim("a", 0), _enqueue("j2")),
        _claim("b", 10),
    ),
    Scenario("`claim`, one job buried and none left", _HELD, _claim("b", 100)),
    Scenario("`finish`, ok", _HELD, _finish("ok")),
    Scenario("`finish`, retry", _HELD, _finish("retry")),
    Scenario("`finish`, permanent", _HELD, _finish("permanent")),
    Scenario(
        "`enqueue_many`, one of two new",
        (_enqueue("j1"),),
        Step(
            "enqueue_many",
            {
                "events": [{"id": "j1", "qty": 1}, {"id": "j2", "qty": 1}],
                "now_ms": 0,
                "ttl_ms": 100,
            },
        ),
    ),
    Scenario("`claim_many`, two jobs", (_enqueue("j1"), _enqueue("j2")), _CLAIM_TWO),
    Scenario(
        "`finish_many`, two jobs",
        (_enqueue("j1"), _enqueue("j2"), _CLAIM_TWO),
        Step("finish_many", {"results": [_OK, _RETRY], "now_ms": 5}),
    ),
    Scenario(
        "`finish_and_claim`, one finished and one leased",
        (_enqueue("j1"), _claim("a", 0), _enqueue("j2")),
        Step(
            "finish_and_claim",
            {"results": [_OK], "owner": "a", "now_ms": 5, "max_jobs": 1, "lease_ms": 10},
        ),
    ),
    Scenario(
        "`renew`",
        _HELD,
        Step("renew", {"ticket": {"issued": 0}, "now_ms": 5, "lease_ms": 10}),
    ),
    Scenario(
        "`redrive`",
        (*_HELD, _finish("permanent")),
        Step("redrive", {"job_id": "j1", "now_ms": 20, "ttl_ms": 100, "note": "again"}),
    ),
    Scenario(
        "`redrive_many`, two of three jobs",
        (_enqueue("j1"), _enqueue("j2"), _enqueue("j3"), _CLAIM_TWO, _BURY_TWO),
        Step(
            "redrive_many",
            {"job_ids": ["j2", "j3", "j1"], "now_ms": 20, "ttl_ms": 100, "note": "again"},
        ),
    ),
    Scenario(
        "`run_once`, sent and acknowledged",
        (_enqueue("j1"),),
        _RUN,
        (_claim("a", 0), _finish("ok")),
    ),
)

#: What the clock of `run_once` reads.
READINGS_MS = (0, 5)
