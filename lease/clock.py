"""The wall clock of the command line: in milliseconds, and never backwards within a process."""

import threading
import time
from collections.abc import Callable


def wall_ms() -> int:
    """Return the wall clock's time in milliseconds since 1970, whatever it is set to."""
    return time.time_ns() // 1_000_000


class SteadyClock:
    """A clock that stands still where its source goes back, until the source has caught up.

    Leases and deadlines then last longer for this process; none ends early. Safe to call from
    several threads.

    Args:
        source: returns the present in milliseconds.
        on_step_back: told by how many milliseconds the source went back, once for each step.
    """

    def __init__(
        self,
        source: Callable[[], int] = wall_ms,
        on_step_back: Callable[[int], object] = lambda _by_ms: None,
    ) -> None:
        self._source = source
        self._on_step_back = on_step_back
        self._lock = threading.Lock()
        self._latest_ms = self._last_ms = source()

    def __call__(self) -> int:
        """Return the latest instant that the source has shown so far."""
        with self._lock:
            # Read under the lock: two threads may otherwise compare their readings in reverse.
            now_ms = self._source()
            back_ms = self._last_ms - now_ms
            self._last_ms = now_ms
            self._latest_ms = latest_ms = max(self._latest_ms, now_ms)
        if back_ms > 0:
            self._on_step_back(back_ms)
        return latest_ms
