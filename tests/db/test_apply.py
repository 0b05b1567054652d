"""yoyo on a borrowed connection, and its stock command on the file afterwards."""

import errno
import getpass
import os
import socket
import sqlite3
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease import UnusableFile, claim, enqueue, jobs, open_queue
from lease.db import apply as migrations_of_yoyo
from lease.db.apply import BorrowedConnection
from lease.db.connection import connect
from lease.db.migrations import missing
from lease.db.transaction import write_transaction
from lease.outbox import create_outbox
from tests.support.layouts import MIGRATIONS

YOYO = Path(sysconfig.get_path("scripts"), "yoyo")


@pytest.fixture(autouse=True)
def nothing_read_yet() -> Iterator[None]:
    """Let each test find the migrations as a new process does, and leave none of its own."""
    migrations_of_yoyo._shipped.cache_clear()
    yield
    migrations_of_yoyo._shipped.cache_clear()


def yoyo(command: str, path: Path, *options: str) -> str:
    """Run the stock command on the queue set of a file, as a DBA would."""
    database = ("-d", f"sqlite:///{path}", "-m", "^queue_")
    done = subprocess.run(
        [YOYO, command, "-b", "--no-config-file", *database, *options, MIGRATIONS / "sqlite"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def states(path: Path) -> dict[str, str]:
    """Return what `yoyo list` says about each migration: A for applied, U for not."""
    rows = (line.split() for line in yoyo("list", path).splitlines()[2:])
    return {name: state for state, name, _source in rows}


def shipped(path: Path) -> list[str]:
    """Name the set's migrations, by asking what a new file lacks."""
    with closing(connect(path.with_suffix(".none"))) as con:
        return missing(con, "queue")


def test_stock_mark_puts_on_record_what_was_applied_by_hand(queue_path: Path):
    """A file that was refused until then is a current one afterwards."""
    with closing(connect(queue_path)) as con:
        for name in shipped(queue_path):
            con.executescript((MIGRATIONS / "sqlite" / f"{name}.sql").read_text())
    with pytest.raises(UnusableFile, match="record it with yoyo mark"):
        open_queue(queue_path)

    yoyo("mark", queue_path)
    open_queue(queue_path).close()
    assert states(queue_path) == dict.fromkeys(shipped(queue_path), "A")


def test_stock_list_agrees(queue_path: Path):
    """`yoyo list` shows every migration of the queue applied, and its own tables do no harm."""
    open_queue(queue_path).close()

    assert states(queue_path) == dict.fromkeys(shipped(queue_path), "A")
    open_queue(queue_path).close()


def test_stock_rollback_agrees(queue_path: Path):
    """`yoyo rollback` removes all that was applied; the next opening applies it again."""
    open_queue(queue_path).close()
    yoyo("rollback", queue_path, "--all")
    with closing(connect(queue_path)) as con:
        assert missing(con, "queue") == shipped(queue_path)
        left = con.execute("SELECT name FROM sqlite_schema WHERE type != 'index'").fetchall()
    own = {name for (name,) in left if not name.startswith(("_yoyo", "yoyo", "sqlite_"))}

    assert own == set()
    assert states(queue_path) == dict.fromkeys(shipped(queue_path), "U")
    with closing(open_queue(queue_path)) as con:
        assert missing(con, "queue") == []


def test_stock_rollback_of_last_step_agrees(queue_path: Path):
    """One step back with the command, one step forward by opening; the jobs stay."""
    with closing(open_queue(queue_path)) as con:
        enqueue(con, {"id": "a", "qty": 1}, 0, 1000)
    last = shipped(queue_path)[-1]
    yoyo("rollback", queue_path, "-r", last)

    assert states(queue_path)[last] == "U"
    with closing(open_queue(queue_path)) as con:
        assert claim(con, "w", 0)["id"] == "a"
        assert missing(con, "queue") == []


def test_stock_reapply_agrees(queue_path: Path):
    """`yoyo reapply` of the last migration leaves a queue that works."""
    with closing(open_queue(queue_path)) as con:
        enqueue(con, {"id": "a", "qty": 1}, 0, 1000)
    yoyo("reapply", queue_path, "-r", shipped(queue_path)[-1])

    with closing(open_queue(queue_path)) as con:
        assert claim(con, "w", 0)["id"] == "a"


def test_stock_apply_makes_current_file(queue_path: Path):
    """A file that the command made has the same schema as one of ours, and nothing is missing."""
    yoyo("apply", queue_path)
    ours = queue_path.with_suffix(".ours")
    open_queue(ours).close()
    texts = []
    for path in (queue_path, ours):
        with closing(connect(path)) as con:
            assert missing(con, "queue") == []
            texts.append(
                con.execute(
                    "SELECT name, sql FROM sqlite_schema WHERE name != 'yoyo_lock' "
                    "AND name != 'sqlite_autoindex_yoyo_lock_1' ORDER BY name"
                ).fetchall()
            )

    assert texts[0] == texts[1]


def test_gives_the_first_pages_to_the_jobs(queue_path: Path):
    """What each verb writes lies beside the first page of a new file, and the bookkeeping last."""
    with closing(open_queue(queue_path)) as con:
        names = [
            name
            for (name,) in con.execute(
                "SELECT tbl_name FROM sqlite_schema WHERE rootpage > 0 ORDER BY rootpage"
            )
        ]

    assert names[:3] == ["jobs", "jobs", "sqlite_sequence"]
    assert {name for name in names if name.startswith("_yoyo")} == set(names[-6:])


def test_ignores_stale_lock(queue_path: Path):
    """A lock row that a killed yoyo left behind holds nobody up."""
    with closing(connect(queue_path)) as con:
        con.execute("CREATE TABLE yoyo_lock (locked INT, ctime TIMESTAMP, pid INT NOT NULL)")
        con.execute("INSERT INTO yoyo_lock VALUES (1, '2026-01-01', 1)")

    with closing(open_queue(queue_path)) as con:
        assert con.execute("SELECT count(*) FROM jobs").fetchone() == (0,)
        assert con.execute("SELECT count(*) FROM yoyo_lock").fetchone() == (1,)


def test_records_no_user_and_no_host(queue_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The log tells what was applied when, and neither who nor where; nobody is even asked."""

    def refuse(*_arguments):
        raise AssertionError("asked for the user's or the host's name")

    monkeypatch.setattr(getpass, "getuser", refuse)
    monkeypatch.setattr(socket, "getfqdn", refuse)
    monkeypatch.setattr(socket, "gethostname", refuse)
    with closing(open_queue(queue_path)) as con:
        log = con.execute(
            "SELECT migration_id, operation, username, hostname FROM _yoyo_log ORDER BY rowid"
        ).fetchall()

        applied = con.execute(
            "SELECT migration_id FROM _yoyo_log INNER JOIN _yoyo_migration "
            "USING (migration_id, migration_hash)"
        ).fetchall()

    assert log == [(name, "apply", None, None) for name in shipped(queue_path)]
    assert sorted(applied) == [(name,) for name in shipped(queue_path)]


def test_leaves_transaction_to_its_owner(queue_path: Path):
    """Whatever yoyo may try, the one transaction is neither committed nor rolled back by it."""
    with closing(connect(queue_path)) as con:
        backend = BorrowedConnection(con)
        with write_transaction(con):
            con.execute("CREATE TABLE made (n)")
            backend.commit()
            backend.rollback()
            with backend.copy() as copy:
                assert copy is backend
            with backend.transaction():
                con.execute("INSERT INTO made VALUES (1)")

            assert con.in_transaction
            with closing(connect(queue_path)) as other:
                assert other.execute("SELECT name FROM sqlite_schema").fetchall() == []
        assert con.execute("SELECT n FROM made").fetchall() == [(1,)]


def test_registers_no_global_adapter(queue_path: Path):
    """The process's way to store times stays what the application made it."""
    before = dict(sqlite3.adapters), dict(sqlite3.converters)
    open_queue(queue_path).close()

    assert (dict(sqlite3.adapters), dict(sqlite3.converters)) == before


class Packed:
    """A folder that is not on disk, as in a zipped wheel."""

    def iterdir(self) -> Iterator[Any]:
        """Return the migrations' files."""
        return (MIGRATIONS / "sqlite").iterdir()


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the migrations be where yoyo cannot read them."""
    monkeypatch.setattr(migrations_of_yoyo, "folder", lambda *_: Packed())


def test_makes_no_temporary_folder(queue_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What lies on disk is read where it is: a process that is killed leaves nothing behind."""

    def refuse(**_options: object) -> None:
        raise AssertionError("asked for a temporary folder")

    monkeypatch.setattr(migrations_of_yoyo, "TemporaryDirectory", refuse)
    open_queue(queue_path).close()

    assert states(queue_path) == dict.fromkeys(shipped(queue_path), "A")


def test_reads_the_migrations_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A process that makes many files splits their SQL for the first of them alone."""
    open_queue(tmp_path / "first.db").close()

    def refuse(*_sources: str) -> None:
        raise AssertionError("read the migrations again")

    monkeypatch.setattr(migrations_of_yoyo, "read_migrations", refuse)
    open_queue(tmp_path / "second.db").close()

    assert states(tmp_path / "second.db") == dict.fromkeys(shipped(tmp_path / "second.db"), "A")


@pytest.mark.usefixtures("packed")
def test_leaves_no_temporary_file(
    queue_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The copies that yoyo reads of what is packed are gone afterwards."""
    place = tmp_path / "[t]*"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    open_queue(queue_path).close()

    assert list(place.iterdir()) == []
    assert states(queue_path) == dict.fromkeys(shipped(queue_path), "A")


@pytest.mark.usefixtures("packed")
def test_names_a_full_temporary_folder(queue_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The migrations cannot be unpacked into it, and nothing of the file has changed."""

    def fail(**_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(migrations_of_yoyo, "TemporaryDirectory", fail)
    with pytest.raises(UnusableFile, match="temporary folder: No space left on device"):
        open_queue(queue_path)
    with closing(connect(queue_path)) as con:
        assert con.execute("SELECT name FROM sqlite_schema").fetchall() == []


def test_names_migrations_that_cannot_be_read(queue_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is wrong with the installation is not told as the queue's fault, nor the output's."""

    def fail(_migration: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("yoyo.migrations.Migration.load", fail)
    with pytest.raises(UnusableFile, match=r"in .*sqlite cannot be read: Permission denied; inst"):
        open_queue(queue_path)


@pytest.mark.parametrize("before", [[], [jobs.create_queue]])
def test_minds_no_factory(queue_path: Path, before: list[Callable[..., None]]):
    """What the application wants rows and texts to be is neither used nor changed."""

    def refuse(*_arguments: object) -> None:
        raise TypeError("not a row or a text of mine")

    with closing(connect(queue_path)) as con:
        for make in before:
            make(con)
        con.row_factory = con.text_factory = refuse
        create_outbox(con)
        create_outbox(con)

        assert con.row_factory is con.text_factory is refuse
