"""Breaker: refusals are counted until a job is accepted."""

from collections.abc import Sequence
from typing import Any

import pytest

from lease.breaker import Breaker
from lease.errors import Permanent, Refused, Retryable
from lease.limits import CEILING

OK, RETRY, NO = "ok", "retry", "permanent"


def heard(limit: int | None, *outcomes: Any) -> Breaker:
    """Return a breaker that has heard these outcomes."""
    breaker = Breaker(limit)
    for outcome in outcomes:
        breaker.hear(outcome)
    return breaker


@pytest.mark.parametrize(
    ("limit", "outcomes", "room"),
    [
        (3, [], 3),
        (3, [NO], 2),
        (3, [NO, NO], 1),
        (3, [RETRY, NO, RETRY, RETRY, RETRY, NO], 1),
        (3, [OK], CEILING),
        (3, [NO, NO, OK], CEILING),
        (1, [RETRY], 1),
        (None, [], CEILING),
    ],
)
def test_room_shrinks_with_each_refusal(
    limit: int | None, outcomes: Sequence[str], room: int
) -> None:
    """A retry takes nothing away, and the first accepted job gives all room there is."""
    breaker = heard(limit, *outcomes)

    assert breaker.room() == room
    breaker.check()


@pytest.mark.parametrize(
    ("limit", "outcomes"), [(1, [NO]), (3, [NO] * 3), (3, [RETRY, NO, RETRY, NO, RETRY, NO])]
)
def test_check_gives_up_after_so_many_refusals(limit: int, outcomes: Sequence[str]) -> None:
    """The error says how many there were."""
    breaker = heard(limit, *outcomes)

    assert breaker.room() == 0
    with pytest.raises(Refused, match=rf"refuses every job for good \({limit} so far\)$"):
        breaker.check()


@pytest.mark.parametrize(
    ("limit", "outcomes"), [(3, [NO, NO, OK, *[NO] * 50]), (1, [OK, *[NO] * 50]), (None, [NO] * 50)]
)
def test_check_goes_on_after_a_job_was_accepted(limit: int | None, outcomes: Sequence[str]) -> None:
    """A receiver that accepts is the right one, whatever it refuses later."""
    breaker = heard(limit, *outcomes)

    breaker.check()
    assert breaker.room() > 1000


def test_listening_hears_what_a_sender_answers() -> None:
    """Only exactly True is an acceptance and only `Permanent` a refusal; all of it is passed on."""
    answers: list[Any] = [False, 1, None, Retryable("busy"), RuntimeError("a bug"), Permanent("no")]
    breaker = Breaker(2)
    sent = []

    def send(event: str) -> object:
        sent.append(event)
        if isinstance(answers[0], Exception):
            raise answers.pop(0)
        return answers.pop(0)

    listening = breaker.listening(send)
    assert [listening(each) for each in "abc"] == [False, 1, None]
    for kind in (Retryable, RuntimeError):
        with pytest.raises(kind):
            listening("d")
        assert breaker.room() == 2
    with pytest.raises(Permanent, match="no"):
        listening("e")
    assert breaker.room() == 1
    answers.append(True)
    assert listening("f") is True
    assert breaker.room() == CEILING
    assert sent == list("abcddef")
