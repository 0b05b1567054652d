"""Ticker: a line on a terminal every few seconds, and nothing elsewhere."""

import io

import pytest

from lease.cli._ticker import Ticker


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def test_ticker_draws_every_two_seconds() -> None:
    """At both sides of each boundary; what is over soon draws nothing."""
    stream = Terminal()
    instants = iter([0.0, 0.0, 1.999, 2.0, 2.0, 3.999, 4.0, 4.0])
    with Ticker(stream, lambda: next(instants)) as ticker:
        for line in ("at 0", "at 1.999", "at 2", "at 3.999", "at 4"):
            ticker.draw(line)
        assert stream.getvalue() == "\r\x1b[Kat 2\r\x1b[Kat 4"

    assert stream.getvalue().endswith("at 4\r\x1b[K")


def test_ticker_makes_room_once() -> None:
    """Only a line that stands there is taken away."""
    stream = Terminal()
    instants = iter([0.0, 2.0, 2.0])
    with Ticker(stream, lambda: next(instants)) as ticker:
        ticker.clear()
        ticker.draw("here")
        ticker.clear()

    assert stream.getvalue() == "\r\x1b[Khere\r\x1b[K"


def test_ticker_is_silent_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    """A log has no use for it."""
    stream = io.StringIO()
    instants = iter([0.0])
    with Ticker(stream, lambda: next(instants)) as ticker:
        ticker.draw("here")

    assert stream.getvalue() == ""
