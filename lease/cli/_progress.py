"""What a worker tells on stderr: each failure on a line, and on a terminal how far it is."""

import sqlite3
import time
from types import TracebackType
from typing import Self, TextIO

import click

from lease.cli._arguments import span
from lease.cli._output import printable
from lease.db.locked import is_full
from lease.dispatcher import Result

# A receiver that is down fails every job alike; one line in this time says so.
_ALIKE_S = 10

# Redrawing more often than the eye can follow only costs time.
_REDRAW_S = 0.1
_CLEAR = "\r\x1b[K"


class Progress:
    """Tells failures line by line; on a terminal it also keeps a line of counts below them.

    Args:
        stream: where to tell it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._started_s = time.monotonic()
        self._drawn_s = 0.0
        self._sends = self._done = self._failed = 0
        self._error = ""
        self._error_s = 0.0
        self._alike = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_terminal:
            self._write(_CLEAR)

    def tell_result(self, result: Result) -> None:
        """Count a send, and tell of one that did not succeed."""
        self._sends += 1
        if result.status == "done":
            self._done += 1
        else:
            self._failed += 1
            self._tell_failure(result)
        self._draw("")

    def tell_idle(self, due_in_ms: int | None) -> None:
        """Show that there is nothing to do, and until when."""
        self._draw("idle" if due_in_ms is None else f"next job in {span(due_in_ms)}", now=True)

    def tell_trouble(self, error: Exception) -> None:
        """Tell what has to be waited for, or done without."""
        if is_full(error):
            self._say(f"the queue cannot grow ({error}); waiting for room")
        elif isinstance(error, sqlite3.Error):
            self._say(f"the queue is locked by another process ({error}); waiting for it")
        else:
            reason = error.strerror if isinstance(error, OSError) else error
            self._say(f"the workers of this queue cannot take turns ({reason}); going on without")

    def tell_step_back(self, by_ms: int) -> None:
        """Tell that the clock went back."""
        self._say(
            f"the system's clock went back by {span(by_ms)}; time stands still here until it has "
            "caught up, or restart this worker to go by the new time"
        )

    def _tell_failure(self, result: Result) -> None:
        error = str(result.error)
        now_s = time.monotonic()
        is_alike = error == self._error and now_s < self._error_s + _ALIKE_S
        # A job that is dead needs somebody, whatever else has failed alike.
        if is_alike and result.status != "dead":
            self._alike += 1
            return
        suffix = f" ({self._alike} more failed like the one before)" if self._alike else ""
        self._say(_told(result) + suffix)
        self._error, self._error_s, self._alike = error, now_s, 0

    def _say(self, line: str) -> None:
        self._write(f"{_CLEAR if self._is_terminal else ''}{printable(line)}\n")
        self._drawn_s = 0.0

    def _draw(self, state: str, *, now: bool = False) -> None:
        present_s = time.monotonic()
        if not self._is_terminal or (not now and present_s < self._drawn_s + _REDRAW_S):
            return
        self._drawn_s = present_s
        rate = self._sends / max(present_s - self._started_s, _REDRAW_S)
        counts = f"{self._done} done"
        if self._failed:
            counts += f", {self._failed} failed"
        self._write(f"{_CLEAR}{click.style(counts, bold=True)}  {state or f'{rate:.0f} a second'}")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _told(result: Result) -> str:
    what = f"{result.id}: attempt {result.attempt} failed, {result.error}"
    match result.status:
        case "pending":
            return f"{what}; again in {span(result.delay_ms)}"
        case "dead":
            return f"{what}; dead, until it is redriven"
        case "leased":
            return f"{what}; again when its lease ends"
        case _:
            return f"{result.id}: attempt {result.attempt} ended after its lease; not recorded"
