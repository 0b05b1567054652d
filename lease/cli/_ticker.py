"""How far something that takes its time is: one line on a terminal, redrawn every few seconds."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

# What is over by then needs no line.
_EVERY_S = 2.0
_CLEAR = "\r\x1b[K"


class Ticker:
    """Draws a line on a terminal and takes it away at the end of a block; elsewhere nothing.

    Args:
        stream: where to draw.
        clock_s: returns the present in seconds, on a time base that never goes back.
    """

    def __init__(self, stream: TextIO, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._clock_s = clock_s
        self._next_s = clock_s() + _EVERY_S
        self._is_drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.clear()

    def draw(self, line: str) -> None:
        """Draw a line in place of the one before, unless that is recent."""
        if not self._is_terminal or self._clock_s() < self._next_s:
            return
        self._write(_CLEAR + line)
        self._is_drawn = True
        self._next_s = self._clock_s() + _EVERY_S

    def clear(self) -> None:
        """Make room for another line."""
        if self._is_drawn:
            self._write(_CLEAR)
            self._is_drawn = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
