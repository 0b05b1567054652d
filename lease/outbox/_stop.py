"""A request to stop, for the loops that run until they are told to."""

from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Protocol


class Stopping(Protocol):
    """What a loop asks; `threading.Event` is one as well."""

    def is_set(self) -> bool:
        """Tell whether to stop."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for so many seconds at most, and tell whether to stop."""


class Stop:
    """A `Stopping` that a signal handler may set at any moment.

    An Event's set may find its own lock held by the wait that the signal interrupts; a
    SimpleQueue has none that is held in Python code.
    """

    def __init__(self) -> None:
        self._asked = False
        self._wake: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Ask to stop, for good."""
        self._asked = True
        self._wake.put(None)

    def is_set(self) -> bool:
        """Tell whether to stop."""
        return self._asked

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for so many seconds at most, and tell whether to stop."""
        if not self._asked:
            with suppress(Empty):
                self._wake.get(timeout=timeout)
        return self._asked
