"""SIGINT and SIGTERM, for the commands that run until they are stopped."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_STOPPING = b"\r\x1b[KStopping after the job in hand; once more stops at once\n"


@contextmanager
def stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Let the first signal ask for a stop after the job in hand, and the next one kill."""

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        stop()
        if sys.stderr.isatty():
            # Not through the stream, which this may have interrupted.
            os.write(sys.stderr.fileno(), _STOPPING)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
