"""renew: the longer lease, what stays as it was, who is refused, the hooks."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lease import WIDE
from lease.jobs import claim, finish, renew
from tests.support.batches import untouched
from tests.support.queue import (
    DEADLINE,
    ERRORS,
    NOW,
    Hook,
    committed,
    failing_at,
    job,
    put_leased,
    put_pending,
    reading,
    ticket_of,
    unchanged,
    without_waiting,
    writing,
)
from tests.support.refused import IDENTIFIERS, instants, integers, mappings, table, within

END = NOW + 1000
TICKET = {
    "id": "job-1",
    "qty": 7,
    "owner": "worker-a",
    "token": 4,
    "attempt": 1,
    "lease_until": END,
}
GOOD = {"ticket": TICKET, "now_ms": NOW, "lease_ms": 3000}

UNUSABLE = table(
    ticket=[
        *mappings(TICKET),
        *within(TICKET, "id", IDENTIFIERS),
        *within(TICKET, "token", integers(1, 10**15)),
        *within(TICKET, "lease_until", integers(1, 10**15)),
    ],
    now_ms=instants(WIDE),
    lease_ms=integers(1, WIDE.max_lease_ms),
)


@pytest.mark.parametrize(("argument", "value"), UNUSABLE)
def test_renew_refuses(argument: str, value: object) -> None:
    """Input of another type or range is a ValueError before anything changes."""
    hook = Hook()

    with untouched(put_leased) as con, pytest.raises(ValueError, match=f"{argument}.* must be"):
        renew(con, **(GOOD | {argument: value}), fault=hook)
    assert hook == []


def test_renew_extends(con: sqlite3.Connection) -> None:
    """The lease ends later for the same owner, token and attempt; nothing else moves."""
    before = put_leased(con)
    ticket = ticket_of(before)

    renewed = renew(con, ticket, NOW + 700, 1000)
    assert renewed == TICKET | {"lease_until": NOW + 1700}
    assert job(con) == before | {"lease_until": NOW + 1700}
    assert ticket == TICKET


@pytest.mark.parametrize(
    ("lease_ms", "lease_until"),
    [
        pytest.param(999, DEADLINE - 1, id="not-clipped"),
        pytest.param(1000, DEADLINE, id="equal"),
        pytest.param(1001, DEADLINE, id="clipped"),
    ],
)
def test_renew_never_leases_past_the_deadline(
    con: sqlite3.Connection, lease_ms: int, lease_until: int
) -> None:
    """A renewed lease ends at the job's deadline if that comes first."""
    ticket = ticket_of(put_leased(con, lease_until=DEADLINE - 900))

    assert renew(con, ticket, DEADLINE - 1000, lease_ms)["lease_until"] == lease_until
    assert job(con)["lease_until"] == lease_until


@pytest.mark.parametrize(
    ("lease_ms", "extended"),
    [
        pytest.param(1, False, id="shorter"),
        pytest.param(999, False, id="just-shorter"),
        pytest.param(1000, False, id="equal"),
        pytest.param(1001, True, id="just-longer"),
    ],
)
def test_renew_never_shortens(
    con: sqlite3.Connection, queue_path: Path, lease_ms: int, *, extended: bool
) -> None:
    """What was granted stays: no later end means the same ticket, no hook, no changed byte."""
    ticket = ticket_of(put_leased(con))
    hook = Hook()

    if extended:
        assert renew(con, ticket, NOW, lease_ms, hook) == TICKET | {"lease_until": END + 1}
        assert hook == ["after-renew", "after-commit"]
    else:
        with unchanged(con, queue_path):
            again = renew(con, ticket, NOW, lease_ms, hook)
        assert again == ticket
        assert again is not ticket
        assert hook == []
        assert finish(con, again, "ok", NOW) == "done"


def test_renew_at_the_deadline_already(con: sqlite3.Connection, queue_path: Path) -> None:
    """A lease that reaches to the deadline cannot be extended, and stays good until then."""
    ticket = ticket_of(put_leased(con, lease_until=DEADLINE))

    with unchanged(con, queue_path):
        assert renew(con, ticket, NOW, WIDE.max_lease_ms) == ticket


STALE = [
    pytest.param({}, {"id": "job-2"}, NOW, id="another-job"),
    pytest.param({}, {"qty": 8}, NOW, id="another-qty"),
    pytest.param({}, {"owner": "worker-b"}, NOW, id="another-owner"),
    pytest.param({}, {"token": 5}, NOW, id="another-token"),
    pytest.param({}, {"attempt": 2}, NOW, id="another-attempt"),
    pytest.param({}, {"lease_until": END - 1}, NOW, id="another-end"),
    pytest.param({"status": "pending"}, {}, NOW, id="pending"),
    pytest.param({"status": "done"}, {}, NOW, id="done"),
    pytest.param({"status": "dead"}, {}, NOW, id="dead"),
    pytest.param({}, {}, END, id="lease-ended"),
    pytest.param({"deadline": NOW}, {}, NOW, id="deadline-passed"),
]


@pytest.mark.parametrize(("columns", "changed", "now_ms"), STALE)
def test_renew_of_a_stale_ticket(
    con: sqlite3.Connection,
    queue_path: Path,
    columns: dict[str, Any],
    changed: dict[str, Any],
    now_ms: int,
) -> None:
    """Whoever may not finish the job may not renew it: None, no hook, no changed byte."""
    put_leased(con, **columns)
    hook = Hook()

    with unchanged(con, queue_path):
        assert renew(con, TICKET | changed, now_ms, 5000, hook) is None
    assert hook == []


def test_renew_in_the_last_millisecond(con: sqlite3.Connection) -> None:
    """One millisecond before its end a lease can still be renewed."""
    assert renew(con, ticket_of(put_leased(con)), END - 1, 1000)["lease_until"] == END + 999


def test_renew_makes_the_old_ticket_stale(con: sqlite3.Connection) -> None:
    """After a renewal only the new ticket settles or renews the job."""
    put_pending(con)
    old = claim(con, "worker-a", NOW, 1000)
    new = renew(con, old, NOW + 500, 1000)

    assert finish(con, old, "ok", NOW + 600) is False
    assert renew(con, old, NOW + 600, 5000) is None
    assert finish(con, new, "ok", NOW + 1499) == "done"


def test_renew_holds_off_other_workers(con: sqlite3.Connection) -> None:
    """A renewed job goes to another worker at the new end and not at the old one."""
    put_pending(con)
    old = claim(con, "worker-a", NOW, 1000)
    renew(con, old, NOW + 500, 1000)

    assert claim(con, "worker-b", NOW + 1000) is None
    assert claim(con, "worker-b", NOW + 1499) is None
    assert claim(con, "worker-b", NOW + 1500)["token"] == old["token"] + 1


def test_renew_hooks(con: sqlite3.Connection, queue_path: Path) -> None:
    """The first hook comes before the commit, the second after it."""
    before = put_leased(con)
    seen = []

    def hook(boundary: str) -> None:
        (row,), _ = committed(queue_path)
        seen.append((boundary, row["lease_until"], con.in_transaction))

    renew(con, ticket_of(before), NOW, 3000, hook)
    assert seen == [("after-renew", END, True), ("after-commit", NOW + 3000, False)]


def test_renew_keeps_what_the_hook_cannot_change(con: sqlite3.Connection) -> None:
    """The new ticket is the committed one, whatever a hook does to the old."""
    ticket = ticket_of(put_leased(con))

    renewed = renew(con, ticket, NOW, 3000, lambda _: ticket.clear())
    assert renewed == TICKET | {"lease_until": NOW + 3000}


@pytest.mark.parametrize("kind", ERRORS)
def test_renew_rolls_back_a_failing_hook(
    con: sqlite3.Connection, queue_path: Path, kind: type[BaseException]
) -> None:
    """An error before the commit leaves the lease as it was and comes out as it is."""
    row = put_leased(con)
    error = kind("boom")

    with unchanged(con, queue_path), pytest.raises(kind) as caught:
        renew(con, ticket_of(row), NOW, 3000, failing_at("after-renew", error))
    assert caught.value is error


@pytest.mark.parametrize("kind", ERRORS)
def test_renew_keeps_the_commit_of_a_failing_hook(
    con: sqlite3.Connection, queue_path: Path, kind: type[BaseException]
) -> None:
    """An error after the commit leaves the longer lease in force."""
    row = put_leased(con)
    error = kind("boom")

    with pytest.raises(kind) as caught:
        renew(con, ticket_of(row), NOW, 3000, failing_at("after-commit", error))
    assert caught.value is error
    assert not con.in_transaction
    assert committed(queue_path)[0] == [row | {"lease_until": NOW + 3000}]


def test_renew_under_a_reader(con: sqlite3.Connection, queue_path: Path) -> None:
    """A commit that a reader prevents is rolled back and reported."""
    row = put_leased(con)
    without_waiting(con)

    with reading(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        renew(con, ticket_of(row), NOW, 3000)
    assert not con.in_transaction
    assert committed(queue_path)[0] == [row]


def test_renew_under_a_writer(con: sqlite3.Connection, queue_path: Path) -> None:
    """Another's write lock is reported and nothing changes."""
    row = put_leased(con)
    without_waiting(con)

    with writing(queue_path), pytest.raises(sqlite3.OperationalError, match="locked"):
        renew(con, ticket_of(row), NOW, 3000)
    assert not con.in_transaction
    assert job(con) == row
