"""Jobs that somebody's own SQL has put into a queue, and that no verb would take in."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease import jobs, worker
from lease.dispatcher import Dispatcher, Result
from tests.support.cli import lease
from tests.support.queue import faults_beside

NOW = 1_000_000


class Text(bytes):
    """Bytes that are put into a column as a text, which they may be none of."""


POISON = {
    "id of bytes": {"id": b"\x00x"},
    "id with a space": {"id": "order 17"},
    "id that is no UTF-8": {"id": Text(b"a\xff")},
    "id with a NUL": {"id": "a\0b"},
    "id that is no UTF-8 behind a NUL": {"id": Text(b"a\0\xff")},
    "empty id": {"id": ""},
    "id too long": {"id": "a" * 65},
    "quantity too large": {"qty": 5000},
    "quantity of text": {"qty": "many"},
    "quantity that is no UTF-8": {"qty": Text(b"\xff")},
    "token at its end": {"token": 10**15},
    "attempts beyond count": {"attempts": 2000, "max_attempts": 2003},
}

#: Columns in which there may be a text that is no UTF-8.
UNREADABLE = {
    "id": {"id": Text(b"a\xff")},
    "id behind a NUL": {"id": Text(b"a\0\xff")},
    "owner": {"owner": Text(b"a\xff")},
    "reason": {"reason": Text(b"a\xff")},
}


def put(con: sqlite3.Connection, **columns: object) -> None:
    """Put a pending job by SQL of one's own."""
    row = {
        "id": "bad",
        "qty": 1,
        "status": "pending",
        "attempts": 0,
        "max_attempts": 3,
        "token": 0,
        "available_at": NOW,
        "deadline": NOW + 10**9,
    } | columns
    values = ["CAST(? AS TEXT)" if type(each) is Text else "?" for each in row.values()]
    into = f"INSERT INTO jobs ({', '.join(row)}) VALUES ({', '.join(values)})"
    con.execute(into, list(row.values()))


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("poison", POISON)
def test_poison_stops_no_other_job(tmp_path: Path, poison: str, concurrency: int):
    """It is never sent, its attempts run out, and every other job is done."""
    with closing(jobs.open_queue(tmp_path / "q.db")) as con:
        put(con, **POISON[poison])
        events = [{"id": f"good-{number}", "qty": 1} for number in range(6)]
        jobs.enqueue_many(con, events, NOW, 10**9)
    sent: list[object] = []
    told: list[Result] = []
    now_ms = NOW

    def clock() -> int:
        nonlocal now_ms
        now_ms += 1
        return now_ms

    def send(event: object) -> bool:
        sent.append(event)
        return True

    tally = Dispatcher(
        tmp_path / "q.db",
        send,
        owner="w",
        lease_ms=50,
        poll_ms=1,
        clock=clock,
        concurrency=concurrency,
        on_result=told.append,
    ).run("drained")

    assert (tally.done, tally.leased) == (6, 3)
    assert sorted(map(str, sent)) == sorted(map(str, events))
    assert all(isinstance(each.error, ValueError) for each in told if each.status == "leased")
    with closing(jobs.open_queue(tmp_path / "q.db")) as con:
        assert jobs.stats(con)["dead_reasons"]["exhausted"] == 1
        assert faults_beside(con) == []


@pytest.mark.parametrize("columns", UNREADABLE.values(), ids=UNREADABLE)
def test_claim_leases_what_cannot_be_read(con: sqlite3.Connection, columns: dict[str, Any]):
    """It has a ticket, and so has what stands behind it, whichever way they are claimed."""
    put(con, **columns)
    put(con, id="good")
    first, second = jobs.claim(con, "w", NOW, 1), jobs.claim(con, "w", NOW, 1)
    assert first is not None
    assert second is not None
    assert second["id"] == "good"
    assert (first["owner"], first["token"], first["lease_until"]) == ("w", 1, NOW + 1)

    again = jobs.claim_many(con, "w", NOW + 1, 9, 1)
    renewed = {"token": 2, "attempt": 2, "lease_until": NOW + 2}
    assert again == [{**first, **renewed}, {**second, **renewed}]
    _statuses, last = jobs.finish_and_claim(con, [], "w", NOW + 2, 9, 1)
    assert [each["id"] for each in last] == [first["id"], "good"]
    assert faults_beside(con) == []


@pytest.mark.parametrize("column", ["id", "owner", "reason"])
@pytest.mark.parametrize("status", ["pending", "dead"])
def test_lists_show_what_cannot_be_read(
    con: sqlite3.Connection, queue_path: Path, column: str, status: str
):
    """In a form that no verb takes for anything else, and the jobs around it as they are."""
    put(con, id="good-1")
    put(con, **{column: Text(b"a\xff"), "status": status})
    put(con, id="good-2", status=status)

    assert [each["id"] for each in jobs.list_jobs(con)][::2] == ["good-1", "good-2"]
    assert jobs.list_jobs(con)[1][column] == "a\\xff"  # type: ignore[literal-required]
    assert jobs.list_jobs(con, status)[-2][column] == "a\\xff"  # type: ignore[arg-type, literal-required]
    assert jobs.stats(con)["jobs"] == 3
    assert {each.subject: each.is_well for each in jobs.doctor(con, queue_path, NOW)}["tally"]
    shown = lease("jobs", queue_path)
    assert (shown.code, shown.err) == (0, "")
    assert "a\\xff" in shown.out
    assert lease("jobs", queue_path, "--json").json_lines[1][column] == "a\\xff"


def test_run_once_passes_on_what_cannot_be_read(con: sqlite3.Connection):
    """As any other id that no verb takes: what it came to cannot be recorded, and it runs out."""
    put(con, id=Text(b"a\xff"), max_attempts=1)
    put(con, id="good")
    sent: list[object] = []

    def send(event: object) -> bool:
        sent.append(event)
        return True

    with pytest.raises(ValueError, match=r"^ticket id must be "):
        worker.run_once(con, "w", lambda: NOW, send, 1, 1)
    assert worker.run_once(con, "w", lambda: NOW + 1, send, 1, 1) == {
        "id": "good",
        "token": 1,
        "status": "done",
    }
    assert sent == [{"id": "a\\xff", "qty": 1}, {"id": "good", "qty": 1}]
    assert jobs.stats(con)["dead_reasons"]["exhausted"] == 1
