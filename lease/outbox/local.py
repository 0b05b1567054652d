"""An accelerator inside the process: no server, no package, and just as forgetful."""

from collections import deque

from lease.checks import integer
from lease.outbox.model import MAX_POP


class LocalQueue:
    """Hold copies in memory for the threads of one process; a full queue forgets its oldest.

    Args:
        max_items: most items to hold, from 1.
    """

    name = "queue in this process"

    def __init__(self, max_items: int = 10_000) -> None:
        self._items: deque[bytes] = deque(maxlen=integer("max_items", max_items, 1, 2**31 - 1))

    def ping(self) -> None:
        """Do nothing: it is always there."""

    def push(self, payload: bytes) -> int:
        """Append one item; return the queue's length."""
        self._items.append(payload)
        return len(self._items)

    def pop(self, count: int) -> list[bytes]:
        """Remove and return at most `count` items, oldest first."""
        popped: list[bytes] = []
        for _ in range(integer("count", count, 1, MAX_POP)):
            try:
                popped.append(self._items.popleft())
            except IndexError:
                break
        return popped

    def close(self) -> None:
        """Forget everything."""
        self._items.clear()
