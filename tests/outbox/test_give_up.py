"""A delivery that gives up on a receiver that refuses everything."""

import sqlite3
from typing import Any

import pytest

from lease import Permanent, Retryable, jobs
from lease.limits import CEILING
from lease.outbox import Delivered, Refused, Tally, deliver, record
from tests.support.outbox import rows
from tests.support.queue import all_jobs
from tests.support.refused import integers

NO = Permanent("answered 404")


class Receiver:
    """Answers each send with the next of its answers, then refuses."""

    def __init__(self, *answers: object) -> None:
        self._answers = iter(answers)

    def __call__(self, _record: object) -> object:
        answer = next(self._answers, NO)
        if isinstance(answer, Exception):
            raise answer
        return answer


def put(box: sqlite3.Connection, count: int) -> None:
    """Record so many events."""
    for number in range(1, count + 1):
        record(box, "made", {}, id=f"o-{number}", clock=lambda: 1_000_000)


def run(box: sqlite3.Connection, receiver: Receiver, **options: Any) -> Tally:
    """Deliver until nothing can be done."""
    now_ms = iter(range(1_000_000, 9_000_000))
    return deliver(
        box,
        receiver,
        owner="d",
        until="drained",
        clock=lambda: next(now_ms),
        base_ms=1,
        cap_ms=1,
        poll_ms=1,
        **options,
    )


def dead(box: sqlite3.Connection) -> list[str]:
    """Return the ids of the jobs that are dead."""
    return [each["id"] for each in all_jobs(box) if each["status"] == "dead"]


def test_deliver_gives_up_after_so_many_refusals(box: sqlite3.Connection) -> None:
    """Exactly so many records are lost, all of them told; the others can still be sent."""
    put(box, 8)
    told: list[Delivered] = []

    with pytest.raises(Refused, match=r"\(3 so far\)"):
        run(box, Receiver(), give_up_after=3, on_result=told.append)

    assert dead(box) == [each.id for each in told] == ["o-1", "o-2", "o-3"]
    assert {each["attempts"] for each in all_jobs(box)[3:]} == {0}
    assert not box.in_transaction
    assert jobs.redrive_many(box, dead(box), 1_000_000, 60_000, "mended") == ["redriven"] * 3
    assert run(box, Receiver(*[True] * 8), give_up_after=3) == Tally(done=8)


@pytest.mark.parametrize(
    ("answers", "tally"),
    [
        ([NO, NO, True], Tally(done=1, dead=6)),
        ([NO, Retryable("busy"), NO, True], Tally(done=1, dead=6, pending=1)),
    ],
)
def test_deliver_goes_on_once_a_record_was_accepted(
    box: sqlite3.Connection, answers: list[Any], tally: Tally
) -> None:
    """A receiver that accepts one may refuse all that come later."""
    put(box, 7)

    assert run(box, Receiver(*answers), give_up_after=3) == tally


def test_deliver_never_gives_up_by_itself(box: sqlite3.Connection) -> None:
    """Without a number it is the caller's to say what is too much."""
    put(box, 50)

    assert run(box, Receiver()) == Tally(dead=50)


def test_deliver_counts_what_the_receiver_says_alone(box: sqlite3.Connection) -> None:
    """A job without a record is buried without a send, and says nothing of the receiver."""
    jobs.create_queue(box)
    for number in range(5):
        jobs.enqueue(box, {"id": f"stray-{number}", "qty": 1}, 1_000_000, 60_000)
    put(box, 2)

    assert run(box, Receiver(NO, True), give_up_after=2) == Tally(done=1, dead=6)
    assert sorted(each["state"] for each in rows(box)) == ["pending", "processed"]


@pytest.mark.parametrize("value", [case for case in integers(1, CEILING) if case.id != "none"])
def test_deliver_refuses_another_number(box: sqlite3.Connection, value: object) -> None:
    """It is an exact int from 1, or None; nothing is made before."""
    with pytest.raises(ValueError, match=r"^give_up_after must be"):
        run(box, Receiver(), give_up_after=value)
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        all_jobs(box)
