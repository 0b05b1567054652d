"""What senders, the renewals and `stop` tell the thread that runs, in the order they tell it."""

from queue import SimpleQueue
from typing import NamedTuple

from lease.dispatcher._hand import Hand
from lease.model import Outcome


class Answer(NamedTuple):
    """What a send came to.

    Args:
        hand: the job that was sent.
        outcome: what to record, or None where nothing can be.
        error: what the send raised, or the `BadAck` for what it returned; None if confirmed.
    """

    hand: Hand
    outcome: Outcome | None
    error: BaseException | None


class Trouble(NamedTuple):
    """Something that passes, or can be done without, and should be known."""

    error: Exception


#: None only wakes; an exception ends the run.
Message = Answer | Trouble | BaseException | None

#: Unlike an Event's set, a SimpleQueue's put may interrupt its own get in a signal handler.
Mail = SimpleQueue[Message]
