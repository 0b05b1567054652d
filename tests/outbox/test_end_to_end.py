"""A business row, its event, the delivery over HTTP, the kill: one effect."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lease.outbox import open_outbox, record, stats
from tests.support.http import Receiver
from tests.support.processes import run_code

CHILD = "from tests.outbox.deliver_child import main; main()"


def place(path: Path, *orders: str) -> None:
    """Write orders and their events, each pair in one transaction."""
    with closing(open_outbox(path)) as con:
        con.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY)")
        for order in orders:
            con.execute("BEGIN IMMEDIATE")
            con.execute("INSERT INTO orders VALUES (?)", (order,))
            record(con, "order.placed", {"order": order}, id=order)
            con.execute("COMMIT")


def received(path: Path) -> list[tuple[str, str, int]]:
    """Return what the receiver has accepted, and how often it was asked."""
    with closing(sqlite3.connect(path)) as con:
        return con.execute(
            "SELECT id, payload_json, requests FROM inbox_events ORDER BY seq"
        ).fetchall()


@pytest.mark.parametrize("moment", ["after-send", "before-mark"])
@pytest.mark.parametrize("files", ["one file", "two files"])
def test_kill_between_effect_and_record(tmp_path: Path, files: str, moment: str):
    """Killed once the receiver has committed, a second delivery finishes: one effect an order.

    Killed after the answer, there are two requests; killed after the finish, there is one, in two
    files as well, where the record is put in step by the second delivery.
    """
    path, inbox = tmp_path / "app.db", tmp_path / "inbox.db"
    queue_path = "" if files == "one file" else str(tmp_path / "queue.db")
    place(path, "o-1", "o-2", "o-3")

    with Receiver(inbox) as receiver:
        killed = run_code(CHILD, path, queue_path, receiver.url, moment)
        assert (killed.returncode, killed.stderr) == (-9, "")
        assert [row[0] for row in received(inbox)] == ["o-1"]
        with closing(open_outbox(path)) as con:
            assert stats(con)["processed"] == (moment == "before-mark" and files == "one file")

        done = run_code(CHILD, path, queue_path, receiver.url, "none")
        assert (done.returncode, done.stderr) == (0, "")

    requests = 2 if moment == "after-send" else 1
    assert received(inbox) == [
        ("o-1", '{"order":"o-1"}', requests),
        ("o-2", '{"order":"o-2"}', 1),
        ("o-3", '{"order":"o-3"}', 1),
    ]
    with closing(open_outbox(path)) as con:
        assert stats(con) == {
            "pending": 0,
            "dispatched": 0,
            "oldest_pending_at": None,
            "processed": 3,
        }


def test_conflict_at_the_receiver_is_dead_and_visible(tmp_path: Path):
    """An id that the receiver knows with other content is refused for good; the rest goes on."""
    path, inbox = tmp_path / "app.db", tmp_path / "inbox.db"
    other = tmp_path / "other.db"
    place(path, "o-1")
    with closing(open_outbox(other)) as con:
        record(con, "order.placed", {"order": "another"}, id="o-1")
        record(con, "order.placed", {"order": "fine"}, id="o-9")

    with Receiver(inbox) as receiver:
        for each in (path, other):
            done = run_code(CHILD, each, "", receiver.url, "none")
            assert (done.returncode, done.stderr) == (0, "")

    assert received(inbox) == [("o-1", '{"order":"o-1"}', 1), ("o-9", '{"order":"fine"}', 1)]
    with closing(open_outbox(other)) as con:
        assert (stats(con)["pending"], stats(con)["processed"]) == (1, 1)
        assert con.execute("SELECT id, reason FROM jobs WHERE status = 'dead'").fetchall() == [
            ("o-1", "permanent")
        ]
