"""One Hypothesis state machine that drives any dialect beside the model, step by step."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.proof.steps import File, Model, Recorded, Step

Open = Callable[[], AbstractContextManager[sqlite3.Connection]]

# Few and small, so that jobs collide, leases end on the instant and budgets run out.
IDS = st.sampled_from(["a", "b", "c"])
OWNERS = st.sampled_from(["w1", "w2"])
DURATIONS = st.integers(1, 6)
DELAYS = st.integers(0, 4)
OUTCOMES = st.sampled_from(["ok", "retry", "permanent"])
EVENTS = st.fixed_dictionaries({"id": IDS, "qty": st.integers(1, 2)})
FIELDS = {
    "id": IDS,
    "qty": st.integers(1, 2),
    "owner": OWNERS,
    "token": st.integers(1, 4),
    "attempt": st.integers(1, 3),
    "lease_until": st.integers(1, 12),
}
# Mostly the ticket as it was handed out; else with one field of the bearer's own making.
_FORGED = st.one_of(*(st.fixed_dictionaries({name: FIELDS[name]}) for name in FIELDS))
ALTERED: st.SearchStrategy[dict[str, Any]] = st.one_of(st.just({}), st.just({}), _FORGED)


class QueueMachine(RuleBasedStateMachine):
    """Takes each step on a file and on the model, and records it."""

    def __init__(self, dialect: Open) -> None:
        super().__init__()
        self._dialect = dialect
        self._open = ExitStack()
        self._file = Recorded(File(self._open.enter_context(dialect())))
        self._model = Recorded(Model())
        self._trace: list[Step] = []
        self._answers: list[Any] = []
        self._now_ms = 0

    def _take(self, verb: str, **arguments: Any) -> None:
        step = Step(verb, arguments)
        self._trace.append(step)
        answer = self._file.take(step)
        self._answers.append(answer)
        assert answer == self._model.take(step)

    @rule(by_ms=st.integers(1, 4))
    def clock_goes_on(self, by_ms: int) -> None:
        """Time passes."""
        self._now_ms += by_ms

    @rule(by_ms=st.integers(1, 4))
    def clock_jumps_back(self, by_ms: int) -> None:
        """Somebody sets the clock."""
        self._now_ms = max(0, self._now_ms - by_ms)

    @precondition(lambda self: self._model.book().jobs)
    @rule(data=st.data(), before_ms=st.integers(0, 1))
    def clock_reaches_an_end(self, data: st.DataObject, before_ms: int) -> None:
        """It is the very millisecond at which something ends or begins, or the one before."""
        jobs = self._model.book().jobs
        instants = {job.deadline for job in jobs} | {job.available_at for job in jobs}
        instants |= {job.lease_until for job in jobs if job.lease_until is not None}
        at_ms = data.draw(st.sampled_from(sorted(instants)))
        self._now_ms = max(0, at_ms - before_ms)

    @rule(event=EVENTS, ttl_ms=DURATIONS, max_attempts=st.integers(1, 3))
    def enqueue(self, event: dict[str, Any], ttl_ms: int, max_attempts: int) -> None:
        """An application sends a job in."""
        self._take(
            "enqueue", event=event, now_ms=self._now_ms, ttl_ms=ttl_ms, max_attempts=max_attempts
        )

    @rule(owner=OWNERS, lease_ms=DURATIONS)
    def claim(self, owner: str, lease_ms: int) -> None:
        """A worker asks for a job."""
        self._take("claim", owner=owner, now_ms=self._now_ms, lease_ms=lease_ms)

    @precondition(lambda self: self._file.issued)
    @rule(outcome=OUTCOMES, delay_ms=DELAYS)
    def finish_the_newest(self, outcome: str, delay_ms: int) -> None:
        """The worker that claimed last reports."""
        self._take(
            "finish",
            ticket={"issued": len(self._file.issued) - 1},
            outcome=outcome,
            now_ms=self._now_ms,
            delay_ms=delay_ms,
        )

    @precondition(lambda self: self._file.issued)
    @rule(data=st.data(), altered=ALTERED, outcome=OUTCOMES, delay_ms=DELAYS)
    def finish(
        self, data: st.DataObject, altered: dict[str, Any], outcome: str, delay_ms: int
    ) -> None:
        """A worker reports, perhaps too late, perhaps with a ticket of its own making."""
        self._take(
            "finish",
            ticket=self._ticket(data, altered),
            outcome=outcome,
            now_ms=self._now_ms,
            delay_ms=delay_ms,
        )

    @precondition(lambda self: self._file.issued)
    @rule(data=st.data(), altered=ALTERED, lease_ms=DURATIONS)
    def renew(self, data: st.DataObject, altered: dict[str, Any], lease_ms: int) -> None:
        """A worker asks for more time."""
        self._take(
            "renew", ticket=self._ticket(data, altered), now_ms=self._now_ms, lease_ms=lease_ms
        )

    @rule(events=st.lists(EVENTS, max_size=4), ttl_ms=DURATIONS, max_attempts=st.integers(1, 3))
    def enqueue_many(self, events: list[dict[str, Any]], ttl_ms: int, max_attempts: int) -> None:
        """An application sends several jobs in, perhaps one of them twice."""
        self._take(
            "enqueue_many",
            events=events,
            now_ms=self._now_ms,
            ttl_ms=ttl_ms,
            max_attempts=max_attempts,
        )

    @rule(owner=OWNERS, max_jobs=st.integers(1, 3), lease_ms=DURATIONS)
    def claim_many(self, owner: str, max_jobs: int, lease_ms: int) -> None:
        """A worker asks for several jobs."""
        self._take(
            "claim_many", owner=owner, now_ms=self._now_ms, max_jobs=max_jobs, lease_ms=lease_ms
        )

    @rule(data=st.data())
    def finish_many(self, data: st.DataObject) -> None:
        """A worker reports on several jobs, perhaps twice on one."""
        self._take("finish_many", results=self._results(data), now_ms=self._now_ms)

    @rule(data=st.data(), owner=OWNERS, max_jobs=st.integers(1, 3), lease_ms=DURATIONS)
    def finish_and_claim(
        self, data: st.DataObject, owner: str, max_jobs: int, lease_ms: int
    ) -> None:
        """A worker reports, and asks for more at once."""
        self._take(
            "finish_and_claim",
            results=self._results(data),
            owner=owner,
            now_ms=self._now_ms,
            max_jobs=max_jobs,
            lease_ms=lease_ms,
        )

    @rule(job_id=IDS, ttl_ms=DURATIONS)
    def redrive(self, job_id: str, ttl_ms: int) -> None:
        """An operator revives a job."""
        self._take("redrive", job_id=job_id, now_ms=self._now_ms, ttl_ms=ttl_ms, note="again")

    @rule(job_ids=st.lists(IDS, max_size=4), ttl_ms=DURATIONS)
    def redrive_many(self, job_ids: list[str], ttl_ms: int) -> None:
        """An operator revives several jobs, perhaps one of them twice."""
        self._take(
            "redrive_many", job_ids=job_ids, now_ms=self._now_ms, ttl_ms=ttl_ms, note="again"
        )

    def _results(self, data: st.DataObject) -> list[list[Any]]:
        count = data.draw(st.integers(0, min(3, len(self._file.issued))))
        return [
            [self._ticket(data, data.draw(ALTERED)), data.draw(OUTCOMES), data.draw(DELAYS)]
            for _ in range(count)
        ]

    def _ticket(self, data: st.DataObject, altered: dict[str, Any]) -> dict[str, Any]:
        # The newest ticket is the simplest choice, since it is the one most likely to be good.
        last = len(self._file.issued) - 1
        return {"issued": last - data.draw(st.integers(0, min(last, 4))), **altered}

    def teardown(self) -> None:
        """Replay what was recorded, as text, on a new file."""
        self._open.close()
        text = json.dumps(self._trace)
        note(f"the trace as data: {text}")
        with self._dialect() as con:
            again = Recorded(File(con))
            steps = [Step(*step) for step in json.loads(text)]
            assert self._answers == [again.take(step) for step in steps[: len(self._answers)]]
