"""`lease outbox init`: a file of its own, or an outbox in a database that is there."""

import sqlite3
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest

from lease.db import durability
from lease.outbox import open_outbox, pending, record
from tests.support.cli import lease
from tests.support.queue import content


@pytest.fixture
def outbox_path(tmp_path: Path) -> Path:
    """Where an outbox is to be."""
    return tmp_path / "o.db"


def mode_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as con:
        return str(con.execute("PRAGMA journal_mode").fetchone()[0])


@pytest.mark.parametrize(
    ("options", "mode"), [((), "wal"), (("--journal-mode", "delete"), "delete")]
)
def test_init_makes_an_outbox(outbox_path: Path, options: tuple[str, ...], mode: str) -> None:
    """A new file is private, and safe in the way that was asked for."""
    assert lease("outbox", "init", outbox_path, *options) == (
        0,
        f"{outbox_path} is a new outbox\n",
        "",
    )
    assert outbox_path.stat().st_mode & 0o777 == 0o600
    assert mode_of(outbox_path) == mode
    assert lease("outbox", "stats", outbox_path).code == 0


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_init_puts_an_outbox_into_a_database(outbox_path: Path, mode: str) -> None:
    """Its tables and its settings stay as they are, unless told."""
    with closing(sqlite3.connect(outbox_path)) as con:
        con.execute(f"PRAGMA journal_mode = {mode}")
        con.execute("CREATE TABLE orders (id)")

    assert lease("outbox", "init", outbox_path) == (0, f"{outbox_path} has an outbox\n", "")
    assert mode_of(outbox_path) == mode
    with closing(sqlite3.connect(outbox_path)) as con:
        assert con.execute("SELECT count(*) FROM orders").fetchone() == (0,)
        assert con.execute("SELECT count(*) FROM outbox").fetchone() == (0,)
    assert lease("outbox", "init", outbox_path, "--journal-mode", "wal").code == 0
    assert mode_of(outbox_path) == "wal"


def test_init_keeps_what_is_there(outbox_path: Path) -> None:
    """Saying it twice changes nothing."""
    with closing(open_outbox(outbox_path)) as con:
        made = record(con, "made", {})
    before = content(outbox_path)

    assert lease("outbox", "init", outbox_path).code == 0
    assert content(outbox_path) == before
    with closing(open_outbox(outbox_path)) as con:
        assert pending(con) == [made]


@pytest.mark.filterwarnings("default::lease.errors.WalResetWarning")
@pytest.mark.parametrize("is_faulty", [True, False])
def test_init_tells_of_a_faulty_sqlite(outbox_path: Path, is_faulty: bool) -> None:
    """As `lease init` does, in one line."""
    durability._warn_of_wal_reset.cache_clear()
    with patch.object(durability, "has_wal_reset_fault", lambda: is_faulty):
        err = lease("outbox", "init", outbox_path).err

    assert err.count("\n") == is_faulty
    assert err.startswith("lease: SQLite ") == is_faulty


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("",), "'' names no file"),
        ((), "Missing argument 'OUTBOX'"),
        (("o.db", "--journal-mode", "off"), "'off' is not one of"),
    ],
)
def test_init_refuses(words: tuple[str, ...], line: str) -> None:
    """Unusable arguments make nothing."""
    code, out, err = lease("outbox", "init", *words)

    assert (code, out) == (2, "")
    assert line in err
