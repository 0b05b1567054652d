"""Fixtures that every test may ask for."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from lease import open_queue


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
