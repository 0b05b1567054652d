"""The queue as plain SQL on the contract's bare tables: no tree, no index, nothing clever.

It transliterates the contract for histories that the pure model cannot tell: somebody else's SQL
runs on it as on the real file. Each verb reads every row and decides in Python.
"""

import sqlite3
from typing import Any

from tests.support.queue import BARE_SCHEMA

Ticket = dict[str, Any]
_COLUMNS = (
    "seq, id, qty, status, attempts, max_attempts, token, available_at, deadline, owner, "
    "lease_until, reason"
)


def bare() -> sqlite3.Connection:
    """Return a connection to an empty queue in memory, with the bare tables."""
    con = sqlite3.connect(":memory:", isolation_level=None)
    con.executescript(BARE_SCHEMA)
    return con


def rows(con: sqlite3.Connection) -> list[tuple]:
    """Return every job and every audit row, whole."""
    jobs = con.execute(f"SELECT {_COLUMNS} FROM jobs ORDER BY seq").fetchall()
    audits = con.execute("SELECT seq, id, token, at_ms, note FROM redrives ORDER BY seq")
    return jobs + audits.fetchall()


def _jobs(con: sqlite3.Connection) -> list[dict[str, Any]]:
    names = _COLUMNS.split(", ")
    return [
        dict(zip(names, row, strict=True))
        for row in con.execute(f"SELECT {_COLUMNS} FROM jobs ORDER BY seq")
    ]


def _put(con: sqlite3.Connection, seq: int, **columns: object) -> None:
    sets = ", ".join(f"{name} = ?" for name in columns)
    con.execute(f"UPDATE jobs SET {sets} WHERE seq = ?", (*columns.values(), seq))


def enqueue(con: sqlite3.Connection, event: Any, now_ms: int, ttl_ms: int, budget: int) -> str:
    """Return `new`, `duplicate` or `conflict`."""
    for job in _jobs(con):
        if job["id"] == event["id"]:
            return "duplicate" if job["qty"] == event["qty"] else "conflict"
    con.execute(
        "INSERT INTO jobs (id, qty, status, attempts, max_attempts, token, available_at, deadline)"
        " VALUES (?, ?, 'pending', 0, ?, 0, ?, ?)",
        (event["id"], event["qty"], budget, now_ms, now_ms + ttl_ms),
    )
    return "new"


def claim(con: sqlite3.Connection, owner: str, now_ms: int, lease_ms: int) -> Ticket | None:
    """Step 4 of the contract."""
    for job in _jobs(con):
        late = job["deadline"] <= now_ms
        if _free(job, now_ms) and (late or job["attempts"] >= job["max_attempts"]):
            reason = "deadline" if late else "exhausted"
            _put(con, job["seq"], status="dead", reason=reason, owner=None, lease_until=None)
    for job in _jobs(con):
        if _free(job, now_ms) and (job["status"] == "leased" or job["available_at"] <= now_ms):
            ticket = {
                "id": job["id"],
                "qty": job["qty"],
                "owner": owner,
                "token": job["token"] + 1,
                "attempt": job["attempts"] + 1,
                "lease_until": min(now_ms + lease_ms, job["deadline"]),
            }
            _put(
                con,
                job["seq"],
                status="leased",
                attempts=ticket["attempt"],
                token=ticket["token"],
                owner=owner,
                lease_until=ticket["lease_until"],
                reason=None,
            )
            return ticket
    return None


def finish(
    con: sqlite3.Connection, ticket: Ticket, outcome: str, now_ms: int, delay_ms: int
) -> str | bool:
    """Step 5 of the contract."""
    job = _held(con, ticket, now_ms)
    if job is None:
        return False
    status, reason, available_at = "pending", "retry", now_ms + delay_ms
    if outcome == "ok":
        status, reason, available_at = "done", None, now_ms
    elif outcome == "permanent":
        status, reason, available_at = "dead", "permanent", now_ms
    elif job["attempts"] >= job["max_attempts"]:
        status, reason, available_at = "dead", "exhausted", now_ms
    elif now_ms + delay_ms >= job["deadline"]:
        status, reason, available_at = "dead", "deadline", now_ms
    _put(
        con,
        job["seq"],
        status=status,
        reason=reason,
        available_at=available_at,
        owner=None,
        lease_until=None,
    )
    return status


def renew(con: sqlite3.Connection, ticket: Ticket, now_ms: int, lease_ms: int) -> Ticket | None:
    """A longer lease for the holder, up to the deadline, never a shorter one."""
    job = _held(con, ticket, now_ms)
    if job is None:
        return None
    lease_until = max(job["lease_until"], min(now_ms + lease_ms, job["deadline"]))
    _put(con, job["seq"], lease_until=lease_until)
    return ticket | {"lease_until": lease_until}


def redrive(con: sqlite3.Connection, job_id: str, now_ms: int, ttl_ms: int, note: str) -> str:
    """Step 6 of the contract; `refused` where it raises."""
    for job in _jobs(con):
        if job["id"] == job_id and job["status"] == "dead":
            con.execute(
                "INSERT INTO redrives (id, token, at_ms, note) VALUES (?, ?, ?, ?)",
                (job_id, job["token"], now_ms, note),
            )
            _put(
                con,
                job["seq"],
                status="pending",
                attempts=0,
                available_at=now_ms,
                deadline=now_ms + ttl_ms,
                owner=None,
                lease_until=None,
                reason=None,
            )
            return "redriven"
    return "refused"


def next_due(con: sqlite3.Connection) -> int | None:
    """The earliest instant from which a claim changes something, if it is not before zero."""
    due = []
    for job in _jobs(con):
        used_up = job["attempts"] >= job["max_attempts"]
        if job["status"] == "pending":
            due += [0 if used_up else job["deadline"], job["available_at"]]
        elif job["status"] == "leased" and job["lease_until"] is not None:
            due.append(job["lease_until"])
    return min(due, default=None)


def stats(con: sqlite3.Connection) -> dict[str, Any]:
    """What `lease.jobs.stats` tells, counted one by one."""
    found = _jobs(con)
    states = [job["status"] for job in found]
    reasons = [job["reason"] for job in found if job["status"] == "dead"]
    return {
        "jobs": len(found),
        **{state: states.count(state) for state in ("pending", "leased", "done", "dead")},
        "dead_reasons": {
            reason: reasons.count(reason) for reason in ("deadline", "exhausted", "permanent")
        },
        "claims": sum(job["token"] for job in found),
        "redrives": con.execute("SELECT count(*) FROM redrives").fetchone()[0],
        "next_due_ms": next_due(con),
    }


def _free(job: dict[str, Any], now_ms: int) -> bool:
    if job["status"] == "leased":
        return job["lease_until"] is not None and job["lease_until"] <= now_ms
    return job["status"] == "pending"


def _held(con: sqlite3.Connection, ticket: Ticket, now_ms: int) -> dict[str, Any] | None:
    for job in _jobs(con):
        if (
            job["status"] == "leased"
            and (job["id"], job["qty"], job["owner"])
            == (ticket["id"], ticket["qty"], ticket["owner"])
            and (job["token"], job["attempts"]) == (ticket["token"], ticket["attempt"])
            and job["lease_until"] == ticket["lease_until"]
            and job["lease_until"] > now_ms
            and job["deadline"] > now_ms
        ):
            return job
    return None
