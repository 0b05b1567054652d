"""dispatch and redispatch: copies go out, and only what was acknowledged is counted."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lease.errors import AcceleratorError
from lease.outbox import (
    LocalQueue,
    Record,
    apply,
    dispatch,
    pending,
    receive,
    record,
    redispatch,
)
from tests.support.outbox import NOW, Killed, clock, no_effect, rows, unchanged
from tests.support.queue import Hook, failing_at


class Broken(LocalQueue):
    """A queue that fails at one push, before or after it has taken the item."""

    def __init__(self, at: int, *, takes: bool = False) -> None:
        super().__init__()
        self._at = at
        self._takes = takes
        self._pushes = 0

    def push(self, payload: bytes) -> int:
        """Take an item, or fail."""
        self._pushes += 1
        if self._pushes != self._at:
            return super().push(payload)
        if self._takes:
            super().push(payload)
        raise AcceleratorError("broken")


def recorded(con: sqlite3.Connection, count: int) -> list[Record]:
    """Record that many events in one transaction."""
    con.execute("BEGIN")
    made = [record(con, "made", n, id=f"r-{n:04}", clock=lambda: 1) for n in range(count)]
    con.execute("COMMIT")
    return made


def counts(con: sqlite3.Connection) -> list[int]:
    """Return each record's count of dispatches."""
    return [row["dispatch_count"] for row in rows(con)]


def test_dispatch_pushes_copies(box: sqlite3.Connection):
    """Each copy is compact JSON with sorted keys; record, type and payload travel as texts."""
    queue = LocalQueue()
    record(box, "made", {"é": '"'}, id="a")

    assert dispatch(box, queue, pending(box)) == 1
    assert queue.pop(9) == [
        '{"event_type":"made","id":"a","payload_json":"{\\"é\\":\\"\\\\\\"\\"}"}'.encode()
    ]


def test_dispatch_counts(box: sqlite3.Connection):
    """A push is counted with its time; the record stays pending."""
    made = recorded(box, 2)

    assert dispatch(box, LocalQueue(), made[:1], clock=clock) == 1
    first, second = rows(box)
    assert (first["state"], first["dispatch_count"], first["dispatched_at"]) == ("pending", 1, NOW)
    assert (second["dispatch_count"], second["dispatched_at"]) == (0, None)


def test_dispatch_repeats_on_purpose(box: sqlite3.Connection):
    """The same record twice is two pushes and a count of two, processed or not."""
    made = recorded(box, 1)
    queue = LocalQueue()

    assert dispatch(box, queue, made * 2) == 2
    apply(box, made[0], no_effect)
    assert dispatch(box, queue, iter(made)) == 1
    assert counts(box) == [3]
    assert len(queue.pop(9)) == 3


def test_dispatch_of_nothing_writes_nothing(box: sqlite3.Connection, outbox_path: Path):
    """Without records there is neither a push nor a commit."""
    with unchanged(box, outbox_path):
        assert dispatch(box, LocalQueue(), []) == 0


@pytest.mark.parametrize("takes", [False, True])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_dispatch_counts_what_came_before_a_failure(
    box: sqlite3.Connection, at: int, *, takes: bool
):
    """A push without an acknowledgement is not counted, whether the server took it or not."""
    made = recorded(box, 3)

    with pytest.raises(AcceleratorError, match="broken"):
        dispatch(box, Broken(at, takes=takes), made)
    assert counts(box) == [1] * (at - 1) + [0] * (4 - at)
    assert pending(box) == made
    assert not box.in_transaction


def test_dispatch_of_nothing_acknowledged_writes_nothing(
    box: sqlite3.Connection, outbox_path: Path
):
    """A server that is away costs no commit."""
    made = recorded(box, 2)

    with unchanged(box, outbox_path), pytest.raises(AcceleratorError):
        dispatch(box, Broken(1), made)


def test_dispatch_commits_page_by_page(box: sqlite3.Connection):
    """A hundred pushes are counted by one commit, and a failure loses the count of none."""
    made = recorded(box, 205)
    hook = Hook()

    with pytest.raises(AcceleratorError):
        dispatch(box, Broken(204), made, fault=hook)
    assert counts(box) == [1] * 203 + [0, 0]
    assert hook.count("after-push") == 203
    assert [word for word in hook if word != "after-push"] == ["after-count", "after-commit"] * 3
    assert hook.index("after-count") == 100


@pytest.mark.parametrize(
    ("boundary", "counted"), [("after-push", 0), ("after-count", 0), ("after-commit", 1)]
)
def test_dispatch_survives_a_death(box: sqlite3.Connection, boundary: str, counted: int):
    """A death between push and count leaves the count low and the record pending."""
    made = recorded(box, 1)
    queue = LocalQueue()

    with pytest.raises(Killed):
        dispatch(box, queue, made, fault=failing_at(boundary, Killed()))
    assert counts(box) == [counted]
    assert pending(box) == made
    assert receive(queue, 9) == made
    assert not box.in_transaction


def test_dispatch_refuses_an_open_transaction(box: sqlite3.Connection):
    """No server is waited for while a lock is held."""
    made = recorded(box, 1)
    queue = LocalQueue()
    box.execute("BEGIN")

    with pytest.raises(sqlite3.ProgrammingError, match="must not hold a transaction"):
        dispatch(box, queue, made)
    assert box.in_transaction
    assert queue.pop(1) == []
    box.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (None, "not a NoneType"),
        ("b", "not 'b'"),
        ({}, "not one without id"),
        ({"id": "b", "payload_json": "1"}, "not one without event_type"),
        ({"id": 5, "event_type": "t", "payload_json": "1"}, "not one whose id is 5"),
    ],
)
def test_dispatch_refuses_what_is_no_record(
    box: sqlite3.Connection, outbox_path: Path, wrong: Any, says: str
):
    """All records are checked before the first is pushed."""
    made = recorded(box, 1)
    queue = LocalQueue()

    rule = f"a record must be a dict with .*, {says}$"
    with unchanged(box, outbox_path), pytest.raises(ValueError, match=rule):
        dispatch(box, queue, [*made, wrong])
    assert queue.pop(1) == []


def test_dispatch_refuses_clock(box: sqlite3.Connection, outbox_path: Path):
    """A time that ISO 8601 cannot write is refused; the push is not counted."""
    made = recorded(box, 1)

    with unchanged(box, outbox_path), pytest.raises(ValueError, match=r"clock\(\) must be"):
        dispatch(box, LocalQueue(), made, clock=lambda: -1)


def test_redispatch_pushes_all_that_is_pending(box: sqlite3.Connection):
    """Every pending record goes out again, over pages, and no processed one."""
    made = recorded(box, 205)
    queue = LocalQueue()
    dispatch(box, queue, made[:3])
    queue.close()
    apply(box, made[1], no_effect)

    assert redispatch(box, queue, clock=clock) == 204
    assert receive(queue, 999) == [made[0], *made[2:]]
    assert counts(box) == [2, 1, 2] + [1] * 202
    assert rows(box)[-1]["dispatched_at"] == NOW


def test_redispatch_of_nothing(box: sqlite3.Connection, outbox_path: Path):
    """An outbox with nothing pending is only read."""
    with unchanged(box, outbox_path):
        assert redispatch(box, LocalQueue()) == 0


def test_redispatch_calls_hooks(box: sqlite3.Connection):
    """Its boundaries are those of dispatch."""
    recorded(box, 2)
    hook = Hook()
    redispatch(box, LocalQueue(), fault=hook)

    assert hook == ["after-push", "after-push", "after-count", "after-commit"]


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff", id="no-utf-8"),
        pytest.param(b"{", id="cut"),
        pytest.param(b"[]", id="list"),
        pytest.param(b'"a"', id="text"),
        pytest.param(b"{}", id="no-texts"),
        pytest.param(b'{"id":"a","event_type":"made"}', id="no-payload"),
        pytest.param(b'{"id":"a","event_type":"made","payload_json":{}}', id="payload-object"),
        pytest.param(b'{"id":"a b","event_type":"made","payload_json":"{}"}', id="id-space"),
        pytest.param(b'{"id":"a","event_type":"","payload_json":"{}"}', id="type-empty"),
        pytest.param(b'{"id":"a","id":"b","event_type":"m","payload_json":""}', id="key-twice"),
        pytest.param(b"[" * 100_000, id="deep"),
    ],
)
def test_receive_refuses_what_is_no_record(item: bytes):
    """An item of another shape is one clear error that names the queue."""
    queue = LocalQueue()
    queue.push(item)

    with pytest.raises(AcceleratorError, match="process: a popped item is no record: ") as r:
        receive(queue, 1)
    assert len(str(r.value)) < 250


def test_receive_ignores_more_than_it_knows():
    """A later version may say more."""
    queue = LocalQueue()
    queue.push(b'{"id":"a","event_type":"made","payload_json":"1","more":[]}')

    assert receive(queue, 1) == [{"id": "a", "event_type": "made", "payload_json": "1"}]


@pytest.mark.parametrize("count", [0, 10_001, -1, True, 1.0, "1", None])
@pytest.mark.parametrize("ask", [receive, LocalQueue.pop])
def test_receive_refuses_count(ask: Callable[..., object], count: Any):
    """A count is an exact int from 1 to 10000; nothing is popped for another."""
    queue = LocalQueue()
    queue.push(b"x")

    with pytest.raises(ValueError, match="count must be an int from 1 to 10000"):
        ask(queue, count)
    assert queue.pop(10_000) == [b"x"]


def test_local_queue_forgets_the_oldest():
    """A full queue takes on and lets go of its oldest: what is lost is pending all the same."""
    queue = LocalQueue(2)
    queue.ping()

    assert [queue.push(b"1"), queue.push(b"2"), queue.push(b"3")] == [1, 2, 2]
    assert queue.pop(1) == [b"2"]
    assert queue.pop(5) == [b"3"]
    assert queue.pop(5) == []


@pytest.mark.parametrize("size", [0, True, None])
def test_local_queue_refuses_size(size: Any):
    """A queue has room for one item at least."""
    with pytest.raises(ValueError, match="max_items must be an int"):
        LocalQueue(size)
