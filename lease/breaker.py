"""Tell a receiver that refuses everything from one that refuses some jobs."""

from collections.abc import Callable
from typing import TypeVar

from lease.errors import Permanent, Refused
from lease.limits import CEILING
from lease.model import Outcome

_Sent = TypeVar("_Sent")


class Breaker:
    """Counts the jobs that were refused for good, until the first one is accepted.

    A mistyped address answers 404, a wrong password 401, and each such answer buries a job. As
    long as no job was accepted, no more of them may be at risk than the worker would lose before
    it gives up: those that were refused, and those whose answers are still out. A retry says
    nothing either way.

    Args:
        give_up_after: how many refusals are enough, from 1; None for never.
    """

    def __init__(self, give_up_after: int | None) -> None:
        self._room = CEILING if give_up_after is None else give_up_after
        self._refused = 0

    def hear(self, outcome: Outcome) -> None:
        """Take in what a send came to."""
        if outcome == "ok":
            self._room = CEILING
        elif outcome == "permanent":
            self._refused += 1
            self._room -= 1

    def room(self) -> int:
        """Return how many sends may be under way."""
        return self._room

    def check(self) -> None:
        """Give up if there were enough refusals.

        Raises:
            Refused: every job that was answered for good was refused.
        """
        if not self._room:
            raise Refused(f"the receiver refuses every job for good ({self._refused} so far)")

    def listening(self, send: Callable[[_Sent], object]) -> Callable[[_Sent], object]:
        """Return a sender, for one thread, whose answers are heard."""

        def sending(event: _Sent) -> object:
            try:
                answer = send(event)
            except Permanent:
                self.hear("permanent")
                raise
            if answer is True:
                self.hear("ok")
            return answer

        return sending
