"""What the tests of the dispatcher share: a clock, senders, and locks that come and go."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from lease import Event
from lease.dispatcher import Dispatcher
from tests.support.processes import DEADLINE_S
from tests.support.queue import NOW

#: Makes a dispatcher on the queue of the test.
Start = Callable[..., Dispatcher]


class Time:
    """A clock that stands still until an idle worker's wait moves it on."""

    def __init__(self) -> None:
        self.now_ms = NOW

    def __call__(self) -> int:
        """Return the present."""
        return self.now_ms

    def wait(self, due_in_ms: int | None) -> None:
        """Let the time pass until the next job is due."""
        self.now_ms += due_in_ms or 0


class Sender:
    """Answers each send with the next of its answers; an exception is raised."""

    def __init__(self, *answers: object) -> None:
        self.sent: list[Event] = []
        self._answers = iter(answers)

    def __call__(self, event: Event) -> object:
        """Answer one send."""
        self.sent.append(event)
        answer = next(self._answers, True)
        if isinstance(answer, BaseException):
            raise answer
        return answer() if callable(answer) else answer


class Stopper:
    """Tells its dispatcher to stop whenever it is called, and confirms like a sender."""

    worker: Dispatcher

    def __call__(self, *_: object) -> bool:
        """Stop."""
        self.worker.stop()
        return True


class Sends:
    """Does something else for each id, in whichever thread; confirms what it knows nothing of."""

    def __init__(self, **actions: Callable[[], object]) -> None:
        self._actions = actions

    def __call__(self, event: Event) -> object:
        """Send one."""
        return self._actions.get(event["id"], lambda: True)()


class Signal(threading.Event):
    """Something that happens once; waiting for it fails the test when it never does."""

    def __call__(self, *_: object) -> bool:
        """Wait, and confirm like a sender."""
        assert self.wait(DEADLINE_S), "it never happened"
        return True


def raising(error: BaseException, *signals: threading.Event) -> Callable[..., object]:
    """Return what sets the signals and raises."""

    def act(*_: object) -> object:
        for signal in signals:
            signal.set()
        raise error

    return act


def locked_for(path: Path, tries: int) -> Callable[[object], None]:
    """Take the write lock now, and let it go at so many reports, in whichever thread."""
    other = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    reports: list[object] = []

    def report(error: object) -> None:
        reports.append(error)
        if len(reports) == tries:
            other.close()

    return report


def our_threads() -> list[str]:
    """Return the names of the threads that runs have left behind."""
    return [each.name for each in threading.enumerate() if each.name.startswith("lease-")]
