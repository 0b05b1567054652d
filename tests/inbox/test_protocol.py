"""PatientProtocol: which parts of a request have a time of their own, and when it ends."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from lease.inbox._protocol import PatientProtocol

HEAD = b"POST / HTTP/1.1\r\nHost: receiver\r\nContent-Length: 2\r\n\r\n"


class Alarm:
    """What a loop hands out for a call that is to come."""

    def __init__(self, seconds: float, call: Callable[[], object]) -> None:
        self.seconds = seconds
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        """Take it back."""
        self.cancelled = True


class Task:
    """A request that is never done."""

    def add_done_callback(self, _call: object) -> None:
        """Never call it."""


class Loop:
    """A loop in which nothing runs by itself."""

    def __init__(self) -> None:
        self.alarms: list[Alarm] = []

    def call_later(self, seconds: float, call: Callable[[], object]) -> Alarm:
        """Note a call that is to come."""
        self.alarms.append(Alarm(seconds, call))
        return self.alarms[-1]

    def create_task(self, work: Coroutine[Any, Any, Any]) -> "Task":
        """Leave a request unanswered."""
        work.close()
        return Task()

    def armed(self) -> list[Alarm]:
        """Return the calls that were not taken back."""
        return [alarm for alarm in self.alarms if not alarm.cancelled]


class Transport(asyncio.Transport):
    """A connection that notes whether it was closed."""

    closed = False

    def close(self) -> None:
        """Note it."""
        self.closed = True

    def is_closing(self) -> bool:
        """Tell it."""
        return self.closed

    def write(self, _data: object) -> None:
        """Send nothing."""


class Line:
    """A protocol at work on a connection, and the loop it works in."""

    def __init__(self) -> None:
        self.loop: Any = Loop()
        self.transport = Transport()
        config = uvicorn.Config(lambda: None, log_config=None, lifespan="off")
        self.protocol = PatientProtocol(config, ServerState(), {}, self.loop)
        self.protocol.connection_made(self.transport)

    def hears(self, data: bytes) -> list[Alarm]:
        """Receive bytes and return the alarms that are set then."""
        self.protocol.data_received(data)
        armed: list[Alarm] = self.loop.armed()
        return armed


@pytest.fixture
def line() -> Line:
    """A connection that was just made."""
    return Line()


def test_protocol_times_a_header_from_the_start(line: Line) -> None:
    """A client that says nothing, or little by little, has one time for the whole header."""
    (alarm,) = line.loop.armed()

    assert alarm.seconds == 10
    assert line.hears(HEAD[:5]) == [alarm]
    assert line.hears(HEAD[5:9]) == [alarm]
    alarm.call()
    assert line.transport.closed


def test_protocol_times_a_body_by_itself(line: Line) -> None:
    """The header's time ends with the header; the body has its own, however it comes."""
    (first,) = line.loop.armed()
    (second,) = line.hears(HEAD)

    assert (first.cancelled, second.seconds) == (True, 10)
    assert line.hears(b"{") == [second]
    second.call()
    assert line.transport.closed


def test_protocol_times_nothing_while_it_answers(line: Line) -> None:
    """A request that is there in full has all the time that its answer takes."""
    assert line.hears(HEAD + b"{}") == []


def test_protocol_times_nothing_after_the_end(line: Line) -> None:
    """A connection that is gone leaves no alarm behind."""
    line.protocol.connection_lost(None)

    assert line.loop.armed() == []


def test_protocol_hangs_up_on_a_body_at_shutdown(line: Line) -> None:
    """A half-sent request is not waited for."""
    line.hears(HEAD)
    line.protocol.shutdown()

    assert line.transport.closed


def test_protocol_waits_for_an_answer_at_shutdown(line: Line) -> None:
    """A request that is there in full is answered before the end."""
    line.hears(HEAD + b"{}")
    line.protocol.shutdown()

    assert not line.transport.closed
