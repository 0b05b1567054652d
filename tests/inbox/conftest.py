"""Fixtures of the inbox's tests."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lease.inbox import open_inbox


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A path at which no inbox is yet."""
    return tmp_path / "inbox.db"


@pytest.fixture
def inbox(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a new inbox, closed afterwards."""
    with closing(open_inbox(path)) as con:
        yield con
