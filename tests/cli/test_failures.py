"""What is wrong with a file: one line, that names it and says what to do."""

import os
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import click
import pytest

from lease import UnusableFile, jobs
from lease.cli._failures import Failure, blamed_on, needs_extra, shown, typed
from lease.outbox import open_outbox
from tests.support.cli import lease
from tests.support.queue import writing


def line(error: BaseException, path: str = "q.db") -> str:
    with pytest.raises(Failure) as caught, blamed_on(path):
        raise error
    assert caught.value.__cause__ is error
    return caught.value.message


def sqlite_error(name: str) -> sqlite3.Error:
    error = sqlite3.DatabaseError(f"SQLite's own words on {name}")
    error.sqlite_errorcode = getattr(sqlite3, name)
    return error


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("SQLITE_CANTOPEN", "q.db cannot be opened; check its rights, and that its folder is"),
        ("SQLITE_NOTADB", "q.db is no SQLite database; choose another file"),
        ("SQLITE_READONLY", "q.db may only be read; check the rights on the file and its folder"),
        ("SQLITE_READONLY_DIRECTORY", "q.db may only be read; check the rights "),
        ("SQLITE_CORRUPT", "q.db is damaged; go back to a copy"),
        ("SQLITE_FULL", "q.db cannot grow: the disk is full; make room"),
        ("SQLITE_PERM", "q.db may not be opened; check its rights"),
        ("SQLITE_IOERR", "q.db cannot be read or written; check its disk, and try again"),
        ("SQLITE_CONSTRAINT_UNIQUE", "q.db contradicts itself and may be damaged; go back to "),
        ("SQLITE_SCHEMA", "q.db failed: SQLite's own words on SQLITE_SCHEMA"),
    ],
)
def test_blamed_on_gives_advice_for_what_sqlite_reports(name: str, advice: str) -> None:
    """The kinds of failure that a user can mend say how."""
    assert line(sqlite_error(name)).startswith(advice)


def test_blamed_on_names_a_lock() -> None:
    """A lock passes."""
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY

    assert line(error) == "q.db is locked by another process; try again when it is done"


def test_blamed_on_names_a_folder(tmp_path: Path) -> None:
    """SQLite cannot tell a folder from a file it may not open."""
    assert line(sqlite_error("SQLITE_CANTOPEN"), str(tmp_path)) == (
        f"{tmp_path} is a folder; name a file"
    )


def test_blamed_on_passes_on_what_lease_says() -> None:
    """The library's own advice stays, with the file before it."""
    assert line(UnusableFile("the file is a stranger's")) == "q.db: the file is a stranger's"


def test_blamed_on_tells_how_to_make_a_queue() -> None:
    """Only `init` creates a file."""
    assert line(FileNotFoundError()) == (
        "there is no queue file at q.db; create it with: lease init q.db"
    )


def test_blamed_on_leaves_other_errors_alone() -> None:
    """A bug is no fault of the file's."""
    with pytest.raises(ZeroDivisionError), blamed_on("q.db"):
        raise ZeroDivisionError


def test_needs_extra_tells_what_to_install() -> None:
    """A missing library is unusable arguments, not a traceback."""
    with pytest.raises(click.UsageError) as caught, needs_extra("http", "work"):
        raise ModuleNotFoundError("No module named 'httpcore'", name="httpcore")

    assert caught.value.message == (
        "'lease work' needs the http extra: pip install 'lease-queue[http]'"
    )


@pytest.mark.parametrize("name", ["lease.delivery", None])
def test_needs_extra_leaves_a_bug_alone(name: str | None) -> None:
    """A module of lease that is missing is no extra."""
    with pytest.raises(ModuleNotFoundError), needs_extra("http", "work"):
        raise ModuleNotFoundError("gone", name=name)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a b.db", "a b.db"),
        ("\u00e9.db", "\u00e9.db"),
        ("a\nb.db", r"'a\nb.db'"),
        (os.fsdecode(b"\xff.db"), "\ufffd.db"),
        (Path("a.db"), "a.db"),
    ],
)
def test_shown_is_one_printable_line(path: str | Path, text: str) -> None:
    """Any path can be told on any terminal."""
    assert shown(path) == text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.db", "a.db"),
        ("a b.db", "'a b.db'"),
        ("it's.db", """'it'"'"'s.db'"""),
        ("$HOME/*.db", "'$HOME/*.db'"),
        ("a\nb.db", r"'a\nb.db'"),
        (Path("a b.db"), "'a b.db'"),
    ],
)
def test_typed_is_a_word_of_a_command(path: str | Path, text: str) -> None:
    """A path that is told as part of a command can be typed as it stands."""
    assert typed(path) == text


@pytest.mark.filterwarnings("ignore::lease.errors.WalResetWarning")
def test_commands_that_are_told_can_be_typed(tmp_path: Path) -> None:
    """A path with a space is one word of them."""
    path = tmp_path / "my queue.db"
    found = [lease("stats", path), lease("outbox", "stats", path)]
    jobs.open_queue(path).close()
    found.append(lease("outbox", "stats", path))
    open_outbox(path).close()
    found.append(lease("work", path, "--to", "http://127.0.0.1:9/"))

    told = [shlex.split(each.err.partition(": lease ")[2]) for each in found]
    assert told == [
        ["init", str(path)],
        ["outbox", "init", str(path)],
        ["outbox", "init", str(path)],
        ["outbox", "deliver", str(path), "--to", "URL"],
    ]


# The real thing, once for each kind of mistake.


def test_a_folder_is_no_queue(tmp_path: Path) -> None:
    """A folder is named as such by the command that would create a file."""
    assert lease("init", tmp_path) == (1, "", f"lease: {tmp_path} is a folder; name a file\n")


def test_a_text_file_is_no_queue(tmp_path: Path) -> None:
    """Another file is left as it is."""
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to have a header to look at" * 9)

    assert lease("stats", path) == (
        1,
        "",
        f"lease: {path} is no SQLite database; choose another file\n",
    )


def test_a_stranger_s_database_is_no_queue(tmp_path: Path) -> None:
    """Tables of the same name and other columns are refused."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as con:
        con.execute("CREATE TABLE jobs (name TEXT)")

    code, out, err = lease("init", path)

    assert (code, out) == (1, "")
    assert err.startswith(f"lease: {path}: the file's own tables are not those of lease")


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    """A queue cannot be made where there is no folder."""
    path = tmp_path / "none" / "queue.db"

    assert lease("init", path) == (
        1,
        "",
        (
            f"lease: {path} cannot be opened; check its rights, and that its folder is there and "
            "writable\n"
        ),
    )


def test_a_locked_queue_is_told(queue_path: Path) -> None:
    """After SQLite's own wait the command says who is in the way."""
    lease("init", queue_path)

    with writing(queue_path):
        ran = lease("enqueue", queue_path, "--id", "a", "--qty", 1)

    assert ran == (
        1,
        "",
        f"lease: {queue_path} is locked by another process; try again when it is done\n",
    )


@pytest.mark.parametrize(
    "command",
    [
        ("enqueue", "--id", "a", "--qty", "1"),
        ("enqueue", "--from", "-"),
        ("stats",),
        ("jobs",),
        ("redrive", "a", "--note", "n"),
        ("work", "--to", "http://127.0.0.1:1/"),
        ("work", "--to", "http://127.0.0.1:1/", "--drain"),
    ],
)
def test_no_command_but_init_makes_a_file(queue_path: Path, command: tuple[str, ...]) -> None:
    """A mistyped path creates nothing, and the line says how to create it."""
    name, *arguments = command

    assert lease(name, queue_path, *arguments) == (
        1,
        "",
        f"lease: there is no queue file at {queue_path}; create it with: lease init {queue_path}\n",
    )
    assert not queue_path.exists()
