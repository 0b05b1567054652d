"""relay: new records at once, overdue ones again, through outages, until told to stop."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from lease.errors import AcceleratorError
from lease.outbox import LocalQueue, apply, pending, receive, record, relay
from tests.support.outbox import Killed, no_effect, rows, unchanged
from tests.support.queue import without_waiting, writing
from tests.support.refused import integers

Step = Callable[[], object]


class Script(Event):
    """A stop that runs one step at each wait, remembers how long it was to wait, and ends."""

    def __init__(self, *steps: Step) -> None:
        super().__init__()
        self._steps = list(steps)
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        """Do what happens while the relay waits; without a further step, tell it to stop."""
        assert timeout is not None
        self.waits.append(timeout)
        if self._steps:
            self._steps.pop(0)()
        else:
            self.set()
        return self.is_set()


class Clock:
    """A clock that is set by hand."""

    now_ms = 1_000_000

    def __call__(self) -> int:
        """Return the present."""
        return self.now_ms


class Away(LocalQueue):
    """A server that can be away."""

    away = True

    def push(self, payload: bytes) -> int:
        """Take an item, or fail."""
        if self.away:
            raise AcceleratorError("server h:1: away")
        return super().push(payload)


@pytest.fixture
def queue() -> LocalQueue:
    """An empty queue."""
    return LocalQueue()


@pytest.fixture
def clock() -> Clock:
    """A clock at a fixed moment."""
    return Clock()


def test_relay_dispatches_what_is_new(box: sqlite3.Connection, queue: LocalQueue, clock: Clock):
    """Records go out in order, those that come while it waits as well, each once."""
    first = record(box, "made", 1)
    late = []

    def more() -> None:
        late.append(record(box, "made", 2))

    assert relay(box, queue, Script(more, no_step), clock=clock) == 2
    assert receive(queue, 9) == [first, *late]
    assert [row["dispatch_count"] for row in rows(box)] == [1, 1]


def no_step() -> None:
    """Let a wait pass."""


@pytest.mark.parametrize(("after_ms", "pushes"), [(29_999, 1), (30_000, 2), (60_000, 2)])
def test_relay_redispatches_what_is_overdue(
    box: sqlite3.Connection, queue: LocalQueue, clock: Clock, after_ms: int, pushes: int
):
    """A record pending for that long after its push is pushed once more, not a moment earlier."""
    record(box, "made", 1)

    def later() -> None:
        clock.now_ms += after_ms

    relay(box, queue, Script(later, no_step), redispatch_after_ms=30_000, clock=clock)
    assert rows(box)[0]["dispatch_count"] == pushes


def test_relay_lets_processed_records_be(box: sqlite3.Connection, queue: LocalQueue, clock: Clock):
    """What took effect in time is not pushed again."""
    made = record(box, "made", 1)

    def processed() -> None:
        apply(box, made, no_effect)
        clock.now_ms += 10**9

    assert relay(box, queue, Script(processed), clock=clock) == 1


def test_relay_takes_new_before_overdue(box: sqlite3.Connection, queue: LocalQueue, clock: Clock):
    """Within a round's bound the new ones go first, and a full round is followed by the next."""
    old = [record(box, "made", n) for n in range(3)]
    relay(box, queue, Script(), clock=clock)
    queue.close()
    clock.now_ms += 10**6
    new = [record(box, "made", n) for n in range(2)]
    stop = Script()

    assert relay(box, queue, stop, max_rows=2, clock=clock) == 5
    assert receive(queue, 9) == [*new, *old]
    assert len(stop.waits) == 1


def test_relay_waits_for_a_server_that_is_away(
    box: sqlite3.Connection, clock: Clock, caplog: pytest.LogCaptureFixture
):
    """It is asked at growing intervals and reported once; then all goes out as if nothing was."""
    queue = Away()
    made = record(box, "made", 1)

    def back() -> None:
        queue.away = False

    def away_again() -> None:
        record(box, "made", 2)
        queue.away = True

    stop = Script(*[no_step] * 6, back, away_again)
    assert relay(box, queue, stop, poll_ms=1000, clock=clock) == 1
    assert stop.waits == [2, 4, 8, 16, 32, 32, 32, 1, 2]
    assert receive(queue, 9) == [made]
    assert caplog.messages == ["server h:1: away; the records stay pending and are tried again"] * 2


def test_relay_waits_for_a_locked_database(
    box: sqlite3.Connection, outbox_path: Path, queue: LocalQueue, caplog: pytest.LogCaptureFixture
):
    """An application that writes for long is waited for; the push is repeated later."""
    without_waiting(box)
    record(box, "made", 1)
    with writing(outbox_path) as other:
        stop = Script(lambda: other.execute("ROLLBACK"))
        assert relay(box, queue, stop) == 2
    assert caplog.messages == ["database is locked; the records stay pending and are tried again"]
    assert len(queue.pop(9)) == 2
    assert len(stop.waits) == 2


def test_relay_does_not_hide_a_broken_database(tmp_path: Path, queue: LocalQueue):
    """What does not pass by itself comes out."""
    with (
        closing(sqlite3.connect(tmp_path / "empty.db")) as con,
        pytest.raises(sqlite3.OperationalError, match="no such table"),
    ):
        relay(con, queue, Script())


def test_relay_only_reads_when_idle(box: sqlite3.Connection, outbox_path: Path, queue: LocalQueue):
    """Rounds without work write nothing, and wait as long as they were told."""
    stop = Script(no_step, no_step)

    with unchanged(box, outbox_path):
        assert relay(box, queue, stop, poll_ms=250) == 0
    assert stop.waits == [0.25] * 3


@pytest.mark.parametrize(("length", "pushes"), [(7, 6), (8, 4)])
def test_relay_holds_copies_back_from_a_long_queue(
    box: sqlite3.Connection, queue: LocalQueue, clock: Clock, length: int, pushes: int
):
    """Where nobody pops, one overdue record goes out in that time, and not all of them."""
    for n in range(3):
        record(box, "made", n, id=f"r-{n}")
    relay(box, queue, Script(), clock=clock)
    assert len(queue.pop(9)) == 3
    for _ in range(length - 1):
        queue.push(b"x")
    clock.now_ms += 30_000
    stop = Script(no_step, no_step)

    relay(box, queue, stop, max_queue=7, clock=clock)
    assert sum(row["dispatch_count"] for row in rows(box)) == pushes


def test_relay_lets_copies_go_when_the_queue_is_short(
    box: sqlite3.Connection, queue: LocalQueue, clock: Clock
):
    """What was held back goes out in its time; new records are never held back."""
    for n in range(3):
        record(box, "made", n, id=f"r-{n}")
    relay(box, queue, Script(), clock=clock)
    clock.now_ms += 30_000

    def recorded() -> None:
        clock.now_ms += 29_999
        record(box, "made", 3, id="r-3")

    def drained() -> None:
        queue.close()
        clock.now_ms += 30_000

    relay(box, queue, Script(recorded, drained), max_queue=3, clock=clock)
    assert [row["dispatch_count"] for row in rows(box)] == [3, 2, 2, 2]


def test_relay_that_is_stopped_does_nothing(box: sqlite3.Connection, queue: LocalQueue):
    """Stopped before it began, it looks at nothing."""
    record(box, "made", 1)
    stop = Event()
    stop.set()

    assert relay(box, queue, stop) == 0
    assert queue.pop(1) == []


def test_relay_is_ended_by_what_it_does_not_know(box: sqlite3.Connection, queue: LocalQueue):
    """An error of nobody's expectation is not swallowed."""

    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        relay(box, queue, Script(die))


def test_relay_begins_with_time(box: sqlite3.Connection, queue: LocalQueue):
    """A clock near its beginning does not put the threshold before time."""
    made = record(box, "made", 1)

    assert relay(box, queue, Script(), clock=lambda: 5) == 1
    assert pending(box) == [made]


def table(**arguments: Any) -> list[Any]:
    """Return a case of (argument, value) for each unusable value."""
    return [
        pytest.param(name, *case.values, id=f"{name}-{case.id}")
        for name, cases in arguments.items()
        for case in cases
    ]


@pytest.mark.parametrize(
    ("argument", "value"),
    table(
        redispatch_after_ms=integers(1, 86_400_000),
        poll_ms=integers(1, 86_400_000),
        max_rows=integers(1, 2**31 - 1),
        max_queue=integers(1, 2**31 - 1),
    ),
)
def test_relay_refuses(box: sqlite3.Connection, queue: LocalQueue, argument: str, value: Any):
    """An unusable argument is refused before the first round."""
    with pytest.raises(ValueError, match=f"{argument} must be an int"):
        relay(box, queue, Script(), **{argument: value})


@pytest.mark.parametrize("now", integers(0, 253_402_300_799_999))
def test_relay_refuses_clock(box: sqlite3.Connection, queue: LocalQueue, now: Any):
    """A reading that is no instant ends the relay."""
    with pytest.raises(ValueError, match=r"clock\(\) must be an int"):
        relay(box, queue, Script(), clock=lambda: now)
