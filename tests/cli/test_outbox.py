"""`lease outbox`: deliver, stats, pending, redrive and prune on an application's database."""

import json
import shlex
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from lease import jobs
from lease.cli import outbox_files
from lease.outbox import apply, create_outbox, record
from tests.support.cli import ended, lease, receiving, started, until
from tests.support.http import answer, answering, server

DAY = 86_400_000

# The answers of a receiver that is away, refuses for good, or accepts.
AWAY = answering(answer("503 Service Unavailable", b"{}"))
REFUSES = answering(answer("422 Unprocessable", b'{"error": "no such order"}'))
ACCEPTS = answering(answer("200 OK", b'{"accepted": true}'))


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """An application's database, in a mode of its own, with an outbox and no records."""
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as con:
        con.execute("PRAGMA journal_mode = WAL")
        create_outbox(con)
    return path


def recorded(path: Path, *ids: str) -> None:
    """Record an event for each id."""
    with closing(sqlite3.connect(path, isolation_level=None)) as con:
        for name in ids:
            record(con, "order.placed", {"id": name}, id=name, clock=lambda: 1_767_323_045_678)


def states(path: Path) -> dict[str, str]:
    """Return each record's state."""
    with closing(sqlite3.connect(path)) as con:
        return dict(con.execute("SELECT id, state FROM outbox").fetchall())


def received(path: Path) -> list[tuple[str, str]]:
    """Return what a receiver has accepted."""
    with closing(sqlite3.connect(path)) as con:
        return con.execute("SELECT id, payload_json FROM inbox_events ORDER BY seq").fetchall()


def deliver(path: Path, url: str, *more: object) -> Any:
    """Deliver all there is, without long waits."""
    options = ("--drain", "--backoff", "1ms", "--backoff-cap", "1ms", "--poll", "10ms")
    return lease("outbox", "deliver", path, "--to", url, *options, *more)


def test_deliver_to_the_receiver(app: Path, tmp_path: Path) -> None:
    """Every record arrives once with its payload and becomes processed; settings stay."""
    recorded(app, "o-1", "o-2")
    with receiving(tmp_path / "inbox.db") as url:
        assert deliver(app, f"{url}events") == (0, "2 delivered, 0 pending\n", "")
        assert deliver(app, f"{url}events", "--json").json == {
            "done": 0,
            "pending": 0,
            "dead": 0,
            "leased": 0,
            "stale": 0,
        }

    assert received(tmp_path / "inbox.db") == [("o-1", '{"id":"o-1"}'), ("o-2", '{"id":"o-2"}')]
    assert set(states(app).values()) == {"processed"}
    with closing(sqlite3.connect(app)) as con:
        assert con.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_deliver_through_a_queue_of_its_own(app: Path, tmp_path: Path) -> None:
    """With --queue the jobs are kept there, and none in the application's database."""
    queue = tmp_path / "queue.db"
    recorded(app, "o-1")
    jobs.open_queue(queue).close()
    with server(ACCEPTS) as url:
        assert deliver(app, url, "--queue", queue) == (0, "1 delivered, 0 pending\n", "")

    assert states(app) == {"o-1": "processed"}
    assert lease("jobs", queue, "--json").json["status"] == "done"
    assert lease("outbox", "stats", app, "--json").json["dead"] is None


def test_deliver_tells_what_failed(app: Path) -> None:
    """Each failure is a line; what is dead stays pending, and the exit code says so."""
    recorded(app, "o-1")
    with server(AWAY, REFUSES) as url:
        code, out, err = deliver(app, url)

    assert (code, out) == (1, "0 delivered, 1 pending\n")
    first, second = err.splitlines()
    assert first == f"o-1: {url} answered 503; its job is pending"
    assert second == f"o-1: {url} answered 422: 'no such order'; its job is dead"


@pytest.mark.parametrize("has_own_queue", [True, False])
def test_deliver_gives_up_on_a_receiver_that_refuses_everything(
    app: Path, tmp_path: Path, has_own_queue: bool
) -> None:
    """A wrong path costs so many records; the last line says why, and how to release them."""
    recorded(app, *(f"o-{number}" for number in range(110)))
    queue = tmp_path / "its queue.db"
    jobs.open_queue(queue).close()
    more = ("--queue", queue) if has_own_queue else ()
    with receiving(tmp_path / "inbox.db") as url:
        code, out, err = deliver(app, f"{url}typo", *more)
        *failures, last = err.splitlines()

        assert (code, out, len(failures)) == (1, "", 100)
        place = f"{app} --queue '{queue}'" if has_own_queue else app
        command = f"lease outbox redrive {place} --reason permanent --note WHY"
        assert last == (
            "lease: the receiver refuses every job for good (100 so far); check --to, then release "
            f"them with: {command}"
        )

        released = lease(*shlex.split(command.replace("WHY", "typo"))[1:])
        assert released.out == "100 to be sent again\n"
        sent = deliver(app, f"{url}events", *more)
        assert sent == (0, "110 delivered, 0 pending\n", "")


@pytest.mark.parametrize(("number", "dead"), [(2, 2), (0, 4), (5, 4)])
def test_deliver_gives_up_when_it_is_told_to(app: Path, number: int, dead: int) -> None:
    """After another number, or never."""
    recorded(app, "a", "b", "c", "d")
    with server(*[REFUSES] * dead) as url:
        code, out, _ = deliver(app, url, "--give-up-after", number)

    assert (code, out) == (1, "0 delivered, 4 pending\n" if dead == 4 else "")
    assert lease("outbox", "stats", app, "--json").json["dead"] == dead


def test_redrive_revives_a_record(app: Path) -> None:
    """A dead record is seen in stats and pending, and is delivered after a redrive."""
    recorded(app, "o-1", "o-2")
    with server(REFUSES, ACCEPTS) as url:
        assert deliver(app, url)[:2] == (1, "1 delivered, 1 pending\n")
    assert lease("outbox", "stats", app) == (
        0,
        (
            "pending    1  the oldest since 2026-01-02T03:04:05.678+00:00, 1 dead until they are "
            "redriven\nprocessed  1\n"
        ),
        "",
    )
    (listed,) = lease("outbox", "pending", app, "--json").json_lines
    assert (listed["id"], listed["job"], listed["reason"]) == ("o-1", "dead", "permanent")

    redrive = lease("outbox", "redrive", app, "o-1", "--note", "mended")
    assert redrive == (0, "o-1 is to be sent again\n", "")
    with server(ACCEPTS) as url:
        assert deliver(app, url) == (0, "1 delivered, 0 pending\n", "")
    with closing(sqlite3.connect(app)) as con:
        assert con.execute("SELECT id, note FROM redrives").fetchall() == [("o-1", "mended")]


def test_redrive_of_a_queue_of_its_own(app: Path, tmp_path: Path) -> None:
    """--queue names the file that holds the job."""
    queue = tmp_path / "queue.db"
    recorded(app, "o-1")
    jobs.open_queue(queue).close()
    with server(REFUSES) as url:
        deliver(app, url, "--queue", queue)

    redrive = lease("outbox", "redrive", app, "o-1", "--queue", queue, "--note", "n", "--json")
    assert redrive.json == {"redriven": 1, "refused": 0, "note": "n", "dry_run": False}
    assert lease("outbox", "stats", app, "--queue", queue, "--json").json["dead"] == 0


@pytest.fixture
def buried(app: Path) -> Path:
    """Two records that were refused and one that was away too often, then two that are fresh."""
    recorded(app, "p-1", "p-2", "e-1")
    with server(REFUSES, REFUSES, AWAY) as url:
        assert deliver(app, url, "--attempts", 1)[:2] == (1, "0 delivered, 3 pending\n")
    recorded(app, "f-1", "f-2")
    return app


@pytest.mark.parametrize(
    ("how", "released"),
    [
        (("--reason", "permanent"), ["p-1", "p-2"]),
        (("--reason", "exhausted"), ["e-1"]),
        (("--reason", "deadline"), []),
        (("--all",), ["p-1", "p-2", "e-1"]),
        (("e-1", "p-1"), ["e-1", "p-1"]),
    ],
)
def test_redrive_revives_many_records(
    buried: Path, how: tuple[str, ...], released: list[str]
) -> None:
    """All that are dead for a reason, or at all; a dry run says how many, and changes nothing."""
    number = len(released)
    dry = lease("outbox", "redrive", buried, *how, "--dry-run")
    assert dry == (0, f"{number} can be redriven; nothing was changed\n", "")
    assert lease("outbox", "stats", buried, "--json").json["dead"] == 3

    ran = lease("outbox", "redrive", buried, *how, "--note", "mended")
    assert ran == (0, f"{number} to be sent again\n", "")
    with closing(sqlite3.connect(buried)) as con:
        assert con.execute("SELECT id FROM redrives").fetchall() == [(each,) for each in released]
    with server(*[ACCEPTS] * (number + 2)) as url:
        assert deliver(buried, url)[1] == f"{number + 2} delivered, {3 - number} pending\n"


def test_redrive_tells_records_that_are_not_dead(buried: Path) -> None:
    """One without a job, and one that nobody recorded, hold up no other."""
    ran = lease("outbox", "redrive", buried, "f-1", "p-1", "none", "--note", "n", "--json")

    assert (ran.code, ran.json["redriven"], ran.json["refused"]) == (1, 1, 2)
    assert ran.err == f"{buried}: there is no job f-1\n{buried}: there is no job none\n"


@pytest.mark.parametrize("how", [(), ("o-1", "--all"), ("--all", "--reason", "deadline")])
def test_redrive_needs_exactly_one_way(app: Path, how: tuple[str, ...]) -> None:
    """None and two of them are one clear line."""
    assert lease("outbox", "redrive", app, *how, "--note", "n") == (
        2,
        "",
        "lease: give either IDs, or --reason, or --all; see 'lease outbox redrive --help'\n",
    )


def test_redrive_refuses(app: Path, tmp_path: Path) -> None:
    """Without a queue, and without a dead job, there is nothing to release."""
    without = lease("outbox", "redrive", app, "o-1", "--note", "n")
    assert without == (1, "", f"lease: {app} has no queue; name it with --queue\n")
    queue = tmp_path / "queue.db"
    jobs.open_queue(queue).close()

    unknown = lease("outbox", "redrive", app, "o-1", "--queue", queue, "--note", "n")
    assert unknown == (1, "", f"lease: {queue}: there is no job o-1\n")


def test_deliver_runs_until_it_is_told_to_stop(app: Path, tmp_path: Path) -> None:
    """Without --drain it takes what comes, and a signal ends it well."""
    with (
        receiving(tmp_path / "inbox.db") as url,
        started("outbox", "deliver", app, "--to", f"{url}events", "--poll", "20ms") as process,
    ):
        recorded(app, "o-1")
        until(lambda: states(app) == {"o-1": "processed"})
        recorded(app, "o-2")
        until(lambda: states(app)["o-2"] == "processed")
        assert ended(process, signal.SIGTERM) == (0, "2 delivered, 0 pending\n", "")


def test_deliver_tells_of_a_late_answer(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A send that was not recorded says why, though nothing was raised."""
    from lease.cli.outbox_deliver import _tell
    from lease.outbox import Delivered

    _tell(Delivered("o-1", "stale", None))
    assert capsys.readouterr().err == "o-1: the answer came after the lease; its job is stale\n"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--to", "x"), "--to: url"),
        (("--to", "http://h/", "--timeout", "30s"), "--timeout 30s does not fit into --lease 30s"),
        (("--to", "http://h/", "--backoff", "16m"), "--backoff-cap is shorter than --backoff"),
        (("--to", "http://h/", "--give-up-after", "x"), "Invalid value for '--give-up-after'"),
        (("--to", "http://h/", "--attempts", "0"), "'0' is no number from 1 to 1000"),
        ((), "Missing option '--to'"),
    ],
)
def test_deliver_refuses(app: Path, more: tuple[str, ...], told: str) -> None:
    """Unusable arguments are told before anything is touched."""
    code, out, err = lease("outbox", "deliver", app, *more)

    assert (code, out) == (2, "")
    assert told in err


def test_deliver_names_the_missing_extra(app: Path) -> None:
    """Without the http extra it says how to get it."""
    with patch.dict(sys.modules, {"httpcore": None}):
        for name in [name for name in sys.modules if name.startswith("lease.delivery")]:
            del sys.modules[name]
        code, out, err = lease("outbox", "deliver", app, "--to", "http://h/")

    assert (code, out) == (2, "")
    assert "'lease outbox deliver' needs the http extra" in err


def test_stats_of_an_empty_outbox(app: Path) -> None:
    """Nothing is said where there is nothing to say."""
    assert lease("outbox", "stats", app) == (0, "pending    0\nprocessed  0\n", "")
    assert lease("outbox", "stats", app, "--json").json == {
        "pending": 0,
        "dispatched": 0,
        "oldest_pending_at": None,
        "processed": 0,
        "dead": None,
    }


def test_stats_counts_over_pages(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead records are counted however many there are."""
    monkeypatch.setattr(outbox_files, "_PAGE", 2)
    recorded(app, "a", "b", "c")
    with server(REFUSES, REFUSES, REFUSES) as url:
        deliver(app, url)

    assert lease("outbox", "stats", app, "--json").json["dead"] == 3


def test_pending_lists(app: Path) -> None:
    """A table in the order of recording; it says when there is more."""
    recorded(app, "o-1", "o-2", "o-3")

    assert lease("outbox", "pending", app, "--limit", 2) == (
        0,
        (
            "SEQ  ID   TYPE          RECORDED                       PUSHES  JOB  REASON\n"
            "  1  o-1  order.placed  2026-01-02T03:04:05.678+00:00       0  -    -\n"
            "  2  o-2  order.placed  2026-01-02T03:04:05.678+00:00       0  -    -\n"
        ),
        "There are more: --after 2 or a larger --limit\n",
    )
    (last,) = lease("outbox", "pending", app, "--after", 2, "--json").json_lines
    assert last == {
        "seq": 3,
        "id": "o-3",
        "event_type": "order.placed",
        "created_at": "2026-01-02T03:04:05.678+00:00",
        "dispatch_count": 0,
        "dispatched_at": None,
        "job": None,
        "reason": None,
    }
    assert lease("outbox", "pending", app, "--limit", 3).err == ""


def test_prune_removes_in_batches(app: Path) -> None:
    """What was processed long ago goes, in however many transactions; the rest stays."""
    recorded(app, "a", "b", "c", "d")
    with closing(sqlite3.connect(app, isolation_level=None)) as con:
        for name in "abc":
            hint: Any = {"id": name, "event_type": "order.placed", "payload_json": "{}"}
            apply(con, hint, lambda _con, _record: None, clock=lambda: 1_000)

    recent = lease("outbox", "prune", app, "--older-than", "36500d")
    assert recent == (0, "0 removed\n", "")
    assert lease("outbox", "prune", app, "--older-than", "1d", "--batch", 2, "--json").json == {
        "removed": 3
    }
    assert states(app) == {"d": "pending"}


@pytest.mark.parametrize("command", ["stats", "pending", "deliver", "redrive", "prune"])
def test_commands_refuse_other_files(tmp_path: Path, command: str) -> None:
    """No file, a folder, a file that is none of ours: one line, and nothing is made."""
    more: dict[str, tuple[str, ...]] = {
        "deliver": ("--to", "http://127.0.0.1:1/"),
        "redrive": ("o-1", "--note", "n"),
        "prune": ("--older-than", "1d"),
    }
    missing = tmp_path / "missing.db"
    code, out, err = lease("outbox", command, missing, *more.get(command, ()))
    assert (code, out) == (1, "")
    assert err == (
        f"lease: there is no outbox at {missing}; create it with: lease outbox init {missing}\n"
    )
    assert not missing.exists()
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as con:
        con.execute("CREATE TABLE orders (id TEXT)")
    assert lease("outbox", command, other, *more.get(command, ())) == (
        1,
        "",
        (
            f"lease: {other} holds no outbox of this version; choose another file, or put one in "
            f"it with: lease outbox init {other}\n"
        ),
    )
    text = tmp_path / "text.db"
    text.write_text("no database at all, and long enough to be told from an empty one")
    code, out, err = lease("outbox", command, text, *more.get(command, ()))
    assert (code, out) == (1, "")
    assert "is no SQLite database" in err


def test_outbox_prints_its_help() -> None:
    """Every command has a line, and its JSON is documented."""
    code, out, err = lease("outbox", "--help")
    assert (code, err) == (0, "")
    listed = out.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == [
        "deliver",
        "demo",
        "init",
        "pending",
        "prune",
        "redrive",
        "stats",
    ]
    assert not [line for line in listed if line.endswith("...")]
    for name in ("deliver", "pending", "prune", "redrive", "stats"):
        assert "--json" in lease("outbox", name, "--help").out


def test_json_is_one_value_a_line(app: Path) -> None:
    """What is printed for programs is JSON and nothing else."""
    recorded(app, "a", "b")
    lines = lease("outbox", "pending", app, "--json").out.splitlines()

    assert [json.loads(line)["id"] for line in lines] == ["a", "b"]
