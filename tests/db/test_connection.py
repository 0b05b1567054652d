"""Opening a file: by path alone, never by accident a new one, private to its user."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from lease.db import connection
from lease.db.connection import connect

ODD_NAMES = [
    "a?b.db",
    "a?mode=memory",
    "a#b.db",
    "a%41.db",
    "a%00b",
    "100%.db",
    "file:a.db",
    "a b.db",
    "a'b\"c.db",
    "a;b&c=d+e.db",
    "a[x]*.db",
    "a\\b.db",
    "a\nb.db",
    "\u00fc\u540d\U0001f4ec.db",
    ":memory:.db",
    os.fsdecode(b"not-utf8-\xff\xfe.db"),
]


@pytest.fixture(autouse=True)
def usual_umask():
    """The umask that most systems start with, which lets everybody read."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    """Return a file's permissions."""
    return stat.S_IMODE(path.stat().st_mode)


def write(path) -> None:
    """Put something into the file."""
    with closing(connect(path)) as con:
        con.execute("CREATE TABLE made (n)")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_takes_path_to_the_letter(tmp_path: Path, name: str):
    """No character of a path means anything to SQLite."""
    write(tmp_path / name)

    assert os.listdir(tmp_path) == [name]
    with closing(connect(tmp_path / name, create=False)) as con:
        assert con.execute("SELECT name FROM sqlite_schema").fetchall() == [("made",)]


@pytest.mark.parametrize("name", ["file.db", "file:file.db?mode=ro", ":memory:x", "a/../b.db"])
def test_takes_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """A relative path is relative to the working folder."""
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    write(name)

    assert os.path.getsize(tmp_path / name) > 0


def test_takes_bytes_like_any_path(tmp_path: Path):
    """A path object that stands for bytes is a path."""

    class Bytes(os.PathLike):
        def __fspath__(self):
            return os.fsencode(tmp_path / "file.db")

    write(Bytes())

    assert os.listdir(tmp_path) == ["file.db"]


def test_follows_folders_before_dots(tmp_path: Path):
    """`..` after a link to a folder means that folder's parent, as it does for the system."""
    (tmp_path / "far" / "folder").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "folder")
    write(tmp_path / "link" / ".." / "file.db")

    assert (tmp_path / "far" / "file.db").is_file()
    assert not (tmp_path / "file.db").exists()


@pytest.mark.parametrize("path", ["", ":memory:", b"", b":memory:"])
def test_refuses_path_of_no_file(path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What SQLite takes for a temporary or in-memory database is refused."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ValueError, match=r"^path must name a file, not '"):
        connect(path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("create", [True, False])
def test_refuses_null_character(tmp_path: Path, create: bool):
    """A path is never cut at a null character."""
    with pytest.raises(ValueError, match="null"):
        connect(f"{tmp_path}/file\0.db", create=create)
    assert os.listdir(tmp_path) == []


def test_makes_file_private(tmp_path: Path):
    """A new file is for its user alone, whatever the umask allows, and so is its journal."""
    with closing(connect(tmp_path / "file.db")) as con:
        assert mode(tmp_path / "file.db") == 0o600
        con.execute("CREATE TABLE made (n)")
        con.execute("BEGIN")
        con.execute("INSERT INTO made VALUES (1)")
        assert mode(tmp_path / "file.db-journal") == 0o600
        con.execute("COMMIT")


def test_makes_target_of_link_private(tmp_path: Path):
    """The same holds for a file that a link already points to."""
    (tmp_path / "link.db").symlink_to(tmp_path / "file.db")
    write(tmp_path / "link.db")

    assert mode(tmp_path / "file.db") == 0o600
    assert (tmp_path / "link.db").is_symlink()


def test_leaves_permissions_of_existing_file(tmp_path: Path):
    """What the operator decided stays."""
    (tmp_path / "file.db").touch(0o640)
    write(tmp_path / "file.db")

    assert mode(tmp_path / "file.db") == 0o640


def test_makes_file_without_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Closing any descriptor of a database drops this process's locks on it; none is opened."""

    def refuse(*_arguments, **_options):
        raise AssertionError("a database was opened as a file")

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr("builtins.open", refuse)
    connect(tmp_path / "file.db").close()

    assert mode(tmp_path / "file.db") == 0o600


def test_creates_nothing_unless_asked(tmp_path: Path):
    """With `create=False` a missing file stays missing."""
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        connect(tmp_path / "file.db", create=False)

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["", "missing/file.db"])
def test_reports_path_that_cannot_be_opened(tmp_path: Path, name: str):
    """A folder, and a file in a folder that is not there, are SQLite's to refuse."""
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        connect(tmp_path / name)


def test_leaves_transactions_to_the_caller(tmp_path: Path):
    """The driver begins none of its own, and waits one second for a lock unless told otherwise."""
    with (
        closing(connect(tmp_path / "file.db")) as con,
        closing(connect(tmp_path / "file.db", timeout_s=0.25)) as other,
    ):
        assert con.isolation_level is None
        assert con.execute("PRAGMA busy_timeout").fetchone() == (1000,)
        assert other.execute("PRAGMA busy_timeout").fetchone() == (250,)


def test_refuses_sqlite_without_returning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A SQLite before 3.35 is refused by its version, before a file is made."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 99))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.34.99")

    with pytest.raises(sqlite3.NotSupportedError, match=r"^SQLite 3\.34\.99 lacks RETURNING; use"):
        connect(tmp_path / "file.db")
    assert os.listdir(tmp_path) == []


def test_accepts_first_sqlite_with_returning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """3.35.0 itself will do."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 35, 0))
    connect(tmp_path / "file.db").close()

    assert connection.OLDEST_SQLITE == (3, 35, 0)
