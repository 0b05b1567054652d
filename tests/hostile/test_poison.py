"""Jobs that somebody's own SQL has put into a queue, and that no verb would take in."""

from contextlib import closing
from pathlib import Path

import pytest

from lease import jobs
from lease.dispatcher import Dispatcher, Result
from tests.support.queue import faults_beside

NOW = 1_000_000

POISON = {
    "id of bytes": {"id": b"\x00x"},
    "id with a space": {"id": "order 17"},
    "empty id": {"id": ""},
    "id too long": {"id": "a" * 65},
    "quantity too large": {"qty": 5000},
    "quantity of text": {"qty": "many"},
    "token at its end": {"token": 10**15},
    "attempts beyond count": {"attempts": 2000, "max_attempts": 2003},
}


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("poison", POISON)
def test_poison_stops_no_other_job(tmp_path: Path, poison: str, concurrency: int):
    """It is never sent, its attempts run out, and every other job is done."""
    columns = {
        "id": "bad",
        "qty": 1,
        "status": "pending",
        "attempts": 0,
        "max_attempts": 3,
        "token": 0,
        "available_at": NOW,
        "deadline": NOW + 10**9,
    } | POISON[poison]
    with closing(jobs.open_queue(tmp_path / "q.db")) as con:
        con.execute(
            f"INSERT INTO jobs ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            list(columns.values()),
        )
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
