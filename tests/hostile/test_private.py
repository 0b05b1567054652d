"""Who may read what is made, what is told to whom, and what other users of a machine can do."""

import os
import signal
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from lease import jobs
from lease.delivery import HttpSender
from lease.dispatcher import Dispatcher
from lease.inbox import accept, open_inbox
from lease.outbox import open_outbox, record
from tests.support.cli import ended, lease, receiving, started
from tests.support.hostile import as_nobody, complaint, ran, shared_folder
from tests.support.http import answer, answering, server

NOW = 1_000_000
OPENERS = {"queue": jobs.open_queue, "inbox": open_inbox, "outbox": open_outbox}


@pytest.fixture
def generous() -> Iterator[None]:
    """A umask that forbids nobody anything."""
    before = os.umask(0)
    yield
    os.umask(before)


def rights(folder: Path) -> dict[str, int]:
    """Return the rights on each file of a folder."""
    return {each.name: stat.S_IMODE(each.lstat().st_mode) for each in folder.iterdir()}


@pytest.mark.usefixtures("generous")
@pytest.mark.parametrize("kind", OPENERS)
def test_new_file_is_its_users_alone(tmp_path: Path, kind: str):
    """And so is whatever SQLite puts beside it, while it is there."""
    with closing(OPENERS[kind](tmp_path / "it.db")) as con:
        con.execute("BEGIN IMMEDIATE")
        con.execute("CREATE TABLE more (n)")
        assert set(rights(tmp_path).values()) == {0o600}
        assert len(rights(tmp_path)) == (3 if kind == "outbox" else 2)
        con.execute("COMMIT")
    assert set(rights(tmp_path).values()) == {0o600}


@pytest.mark.usefixtures("generous")
@pytest.mark.filterwarnings("ignore::lease.errors.WalResetWarning")
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_everything_beside_a_queue_at_work_is_its_users_alone(tmp_path: Path, mode: str):
    """Whatever a worker puts there, while it sends and once it is gone."""
    seen: dict[str, int] = {}
    with closing(jobs.open_queue(tmp_path / "it.db", journal_mode=mode)) as con:
        jobs.enqueue_many(con, [{"id": f"j{n}", "qty": 1} for n in range(20)], NOW, 10**6)

    def send(_event: object) -> bool:
        seen.update(rights(tmp_path))
        return True

    Dispatcher(tmp_path / "it.db", send, owner="w", clock=lambda: NOW).run("drained")
    seen.update(rights(tmp_path))
    assert "it.db" in seen
    assert set(seen.values()) == {0o600}


@pytest.mark.usefixtures("generous")
def test_commands_make_private_files(tmp_path: Path):
    """The command line as the library."""
    lease("init", tmp_path / "q.db")
    with receiving(tmp_path / "in.db"):
        assert rights(tmp_path) == {"q.db": 0o600, "in.db": 0o600}


@pytest.mark.parametrize("kind", OPENERS)
def test_another_user_reads_nothing(kind: str):
    """A folder that everybody may enter gives nobody a look into a file of ours."""
    with shared_folder() as folder:
        OPENERS[kind](folder / "it.db").close()
        if os.geteuid() == 0:
            assert as_nobody(lambda: os.access(folder / "it.db", os.R_OK)) is False
        assert rights(folder) == {"it.db": 0o600}


# In a folder that others may write to.


def plant_link(folder: Path) -> Path:
    """Let a path of ours lead to a file of the same user that is something else."""
    (folder / "precious.txt").write_text("dear to me\n" * 200)
    (folder / "q.db").symlink_to("precious.txt")
    return folder / "precious.txt"


def plant_hard_link(folder: Path) -> Path:
    """Likewise, by a second name."""
    (folder / "precious.txt").write_text("dear to me\n" * 200)
    os.link(folder / "precious.txt", folder / "q.db")
    return folder / "precious.txt"


@pytest.mark.parametrize("plant", [plant_link, plant_hard_link])
@pytest.mark.parametrize("command", ["init", "receive", "stats", "enqueue"])
def test_planted_link_costs_no_file(tmp_path: Path, command: str, plant: Callable[[Path], Path]):
    """A path that somebody let lead to another file harms it in nothing."""
    precious = plant(tmp_path)
    before = precious.read_bytes(), precious.stat().st_mtime_ns

    assert "no SQLite database" in complaint(ran(command, tmp_path / "q.db"))
    assert (precious.read_bytes(), precious.stat().st_mtime_ns) == before


def test_planted_file_is_not_made_private(tmp_path: Path):
    """A file that somebody was first to make stays his: its rights are not ours to change."""
    (tmp_path / "q.db").touch(0o666)
    (tmp_path / "q.db").chmod(0o666)
    lease("init", tmp_path / "q.db")

    assert rights(tmp_path) == {"q.db": 0o666}


def test_planted_trigger_is_a_strangers(tmp_path: Path):
    """A file is trusted as its user's program is: whoever may write to it decides what it does."""
    with closing(jobs.open_queue(tmp_path / "q.db")) as con:
        con.execute(
            "CREATE TRIGGER evil AFTER INSERT ON jobs"
            " BEGIN DELETE FROM redrives; UPDATE jobs SET qty = 1000; END"
        )
        jobs.enqueue(con, {"id": "a", "qty": 1}, NOW, 1000)
        (job,) = jobs.list_jobs(con)
    assert job["qty"] == 1000


# What is told.

SECRET = "s3cret-Pa55word"


def test_password_of_a_receiver_is_in_no_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It comes from the environment, where other users of the machine cannot see it."""
    lease("init", tmp_path / "q.db")
    lease("enqueue", tmp_path / "q.db", "--id", "a", "--qty", "1")
    url = f"http://user:{SECRET}@127.0.0.1:9/"

    monkeypatch.setenv("LEASE_TO", url)
    with started("work", tmp_path / "q.db") as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        words = psutil.Process(process.pid).cmdline()
        found = ended(process, signal.SIGTERM)
    assert "attempt 1 failed" in said
    assert SECRET not in " ".join(words)
    assert SECRET not in said + found.out + found.err
    assert found.code == 0


@pytest.mark.parametrize("command", ["work", "outbox deliver"])
def test_password_among_the_arguments_is_refused(tmp_path: Path, command: str):
    """Whoever gives one there is told where to put it, and what he gave is not repeated."""
    found = lease(*command.split(), tmp_path / "q.db", "--to", f"http://user:{SECRET}@h/")

    assert found.code == 2
    assert "LEASE_TO" in found.err
    assert SECRET not in found.err


def test_password_of_a_receiver_is_in_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not where the send fails, not where the receiver repeats it, not where the URL is wrong."""
    lease("init", tmp_path / "q.db")
    lease("enqueue", tmp_path / "q.db", "--id", "a", "--qty", "1")
    with server(answering(answer("503 No", b'{"error": "no"}'))) as url:
        secret = url.replace("http://", f"http://user:{SECRET}@") + f"?key={SECRET}"
        monkeypatch.setenv("LEASE_TO", secret)
        said = lease("work", tmp_path / "q.db", "--once")
    monkeypatch.setenv("LEASE_TO", f"htp://user:{SECRET}@h/")
    wrong = lease("work", tmp_path / "q.db", "--once")

    assert (said.code, wrong.code) == (1, 2)
    assert SECRET not in said.err + said.out + wrong.err + wrong.out
    assert "answered 503" in said.err
    assert SECRET not in repr(HttpSender(f"http://user:{SECRET}@h/"))


def test_payload_is_in_no_message_and_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """What an event says is between its sender and its receiver."""
    with closing(open_outbox(tmp_path / "out.db")) as con:
        record(con, "made", {"card": SECRET}, id="a")
        for payload in ({"card": SECRET, "more": 1}, {1: SECRET}, [float("nan"), SECRET]):
            with pytest.raises(Exception) as caught:  # noqa: PT011  (of either kind)
                record(con, "made", payload, id="a")
            assert SECRET not in str(caught.value)
    assert SECRET not in caplog.text


def test_new_file_names_neither_user_nor_host(tmp_path: Path):
    """A copy of a queue that is handed on does not tell whose it was, or where."""
    for kind, opener in OPENERS.items():
        opener(tmp_path / f"{kind}.db").close()
        data = (tmp_path / f"{kind}.db").read_bytes()
        for word in (os.uname().nodename, str(tmp_path), os.path.expanduser("~")):
            assert len(word) < 4 or word.encode() not in data


# SQL in every string.

INJECTIONS = ["'; DROP TABLE jobs; --", '" OR 1=1 --', "a' OR '1'='1", "%", "*", "\x00", "a\x00b"]


@pytest.mark.parametrize("text", INJECTIONS)
def test_text_never_becomes_sql(tmp_path: Path, text: str):
    """A text is a value, or it is refused; the tables stay as they are."""
    path = tmp_path / "q.db"
    with closing(jobs.open_queue(path)) as con, closing(open_inbox(tmp_path / "in.db")) as inbox:
        jobs.enqueue(con, {"id": "a", "qty": 1}, NOW, 10**6)
        for step in (
            lambda: jobs.enqueue(con, {"id": text, "qty": 1}, NOW, 1000),
            lambda: jobs.claim(con, text, NOW),
            lambda: jobs.redrive(con, "a", NOW, 1000, text),
            lambda: jobs.redrive(con, text, NOW, 1000, "n"),
            lambda: jobs.list_jobs(con, text),
            lambda: accept(inbox, {"id": text, "qty": 1}, NOW),
        ):
            with pytest.raises(ValueError, match="must be"):
                step()
        assert jobs.stats(con)["jobs"] == 1


@pytest.mark.parametrize("text", [each for each in INJECTIONS if "\x00" not in each])
def test_payload_and_path_are_values_too(tmp_path: Path, text: str):
    """Where any text is allowed it comes back as it went in."""
    path = tmp_path / text.replace("/", "")
    with closing(open_outbox(path)) as con:
        record(con, "made", {text: text}, id="a")
        (stored,) = con.execute("SELECT payload_json FROM outbox").fetchone()
    assert stored.count(text.replace('"', '\\"')) == 2
    with closing(sqlite3.connect(path)) as con:
        assert con.execute("SELECT count(*) FROM outbox").fetchone() == (1,)
