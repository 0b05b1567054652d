"""judge: each invariant holds for sound evidence, and fails for evidence that was doctored."""

from typing import Any

import pytest

from lease.demo import Evidence, JobEvidence, judge
from lease.demo._evidence import Kill

KILL = Kill(job="b", code=-9, status="leased", token=1, committed=True)
RECOVERED = JobEvidence("b", 2, "done", 2, 2, 2, (2,), (2,))
OTHER = JobEvidence("a", 1, "done", 1, 1, 1, (1,), (1,))
SOUND = Evidence([OTHER, RECOVERED], KILL, [])

KILLED = "the first dispatcher was killed with b sent and not recorded"
TAKEN_OVER = "b was taken over under a higher token and sent again"
DONE = "every job is done"
SENT = "each claim was sent once"
COMMITTED = "the receiver had committed b before the kill"
REPEATED = "b was requested again and still has one effect"
ROWS = "each job has one inbox row, of its quantity"
EFFECTS = "each job has one effect, of its quantity"
REQUESTS = "no job was requested more often than it was sent"
STRANGERS = "the receiver holds nothing else"
IN_THE_QUEUE = [KILLED, TAKEN_OVER, DONE, SENT]
AT_THE_RECEIVER = [COMMITTED, REPEATED, ROWS, EFFECTS, REQUESTS, STRANGERS]


def failing(evidence: Evidence) -> list[str]:
    return [check.text for check in judge(evidence) if not check.holds]


def other(**columns: Any) -> Evidence:
    return SOUND._replace(jobs=[OTHER._replace(**columns), RECOVERED])


def recovered(**columns: Any) -> Evidence:
    return SOUND._replace(jobs=[OTHER, RECOVERED._replace(**columns)])


def kill(**details: Any) -> Evidence:
    return SOUND._replace(kill=KILL._replace(**details))


def test_judge_holds_sound_evidence() -> None:
    """Every invariant is named and holds."""
    assert [tuple(check) for check in judge(SOUND)] == [
        (text, True) for text in IN_THE_QUEUE + AT_THE_RECEIVER
    ]


def test_judge_takes_more_sends_than_requests_for_sound() -> None:
    """A busy machine may cost a further claim, and a request may be lost on its way."""
    assert failing(other(token=3, sends=3, requests=2)) == []


def test_judge_of_an_unseen_inbox_speaks_for_the_queue_alone() -> None:
    """Nothing is claimed of a database that nobody has read."""
    jobs = [job._replace(requests=None, inbox=None, effects=None) for job in SOUND.jobs]
    unseen = Evidence(jobs, KILL._replace(committed=None), [])

    assert [tuple(check) for check in judge(unseen)] == [(text, True) for text in IN_THE_QUEUE]


@pytest.mark.parametrize(
    ("evidence", "texts"),
    [
        pytest.param(kill(code=0), [KILLED], id="first-ended-by-itself"),
        pytest.param(kill(code=-15), [KILLED], id="another-signal"),
        pytest.param(kill(status="done"), [KILLED], id="recorded-before-the-kill"),
        pytest.param(kill(token=2), [TAKEN_OVER], id="same-token"),
        pytest.param(kill(committed=False), [COMMITTED], id="killed-too-early"),
        pytest.param(recovered(sends=1, requests=1), [TAKEN_OVER, SENT, REPEATED], id="not-resent"),
        pytest.param(recovered(requests=1), [REPEATED], id="second-request-unseen"),
        pytest.param(recovered(requests=3), [REQUESTS], id="request-from-elsewhere"),
        pytest.param(recovered(effects=(2, 2)), [REPEATED, EFFECTS], id="doubled"),
        pytest.param(recovered(effects=()), [REPEATED, EFFECTS], id="lost"),
        pytest.param(recovered(inbox=(2, 2)), [ROWS], id="two-rows"),
        pytest.param(other(status="pending"), [DONE], id="pending"),
        pytest.param(other(status="dead"), [DONE], id="dead"),
        pytest.param(other(sends=2), [SENT], id="sent-without-a-claim"),
        pytest.param(other(token=2), [SENT], id="claimed-and-not-sent"),
        pytest.param(other(effects=(3,)), [EFFECTS], id="another-quantity"),
        pytest.param(other(effects=()), [EFFECTS], id="no-effect"),
        pytest.param(other(inbox=()), [ROWS], id="no-row"),
        pytest.param(other(inbox=(3,)), [ROWS], id="row-of-another-quantity"),
        pytest.param(other(requests=0), [REQUESTS], id="never-requested"),
        pytest.param(SOUND._replace(strangers=["x"]), [STRANGERS], id="stranger"),
        pytest.param(
            SOUND._replace(jobs=[OTHER]), [TAKEN_OVER, REPEATED], id="killed-job-has-vanished"
        ),
        pytest.param(SOUND._replace(jobs=[]), [TAKEN_OVER, DONE, REPEATED], id="no-jobs-at-all"),
    ],
)
def test_judge_fails_doctored_evidence(evidence: Evidence, texts: list[str]) -> None:
    """Each lie breaks the invariants that it touches, and no other."""
    assert failing(evidence) == texts
