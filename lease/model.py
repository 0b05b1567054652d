"""The shapes that callers pass in and get back; plain dicts and callables at run time."""

from collections.abc import Callable
from typing import Literal, TypedDict


class Event(TypedDict):
    """What an application asks to have delivered."""

    id: str
    qty: int


class RecordedEvent(TypedDict):
    """What an outbox's record is on its way to a receiver."""

    id: str
    event_type: str
    payload: object


class Ticket(TypedDict):
    """What a claim hands out and a finish must present unchanged."""

    id: str
    qty: int
    owner: str
    token: int
    attempt: int
    lease_until: int


class Settled(TypedDict):
    """What became of one job that was claimed, sent and finished."""

    id: str
    token: int
    status: str


Outcome = Literal["ok", "retry", "permanent"]

#: Called with the name of a commit boundary; for tests and drills.
Fault = Callable[[str], object]

#: Returns the present in milliseconds, on the time base that the caller chose.
Clock = Callable[[], int]

#: Delivers one event to the outside world; only an exact True is an acknowledgement.
Send = Callable[[Event], object]
