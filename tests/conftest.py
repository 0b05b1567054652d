"""Fixtures that every test may ask for."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from lease import open_queue


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the tests have measured, also where they ran in processes of their own."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, line in getattr(report, "user_properties", ()):
                # Under this name tests/proof hands its lines on.
                if name == "figure" and report.when == "call":
                    terminalreporter.write_line(line)


@pytest.fixture
def queue_path(tmp_path: Path) -> Path:
    """A path at which no file is yet."""
    return tmp_path / "queue.db"


@pytest.fixture
def con(queue_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a new queue, closed afterwards."""
    connection = open_queue(queue_path)
    yield connection
    connection.close()
