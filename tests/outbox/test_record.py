"""record: the event in the caller's transaction, once for each id."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease.errors import Conflict
from lease.outbox import create_outbox, record
from tests.support.outbox import NOW, Killed, clock, committed, rows, unchanged
from tests.support.queue import Hook, failing_at
from tests.support.refused import IDENTIFIERS, BadRepr, Dict, Float, Int, Str, integers


def test_record_writes_a_pending_row(box: sqlite3.Connection, outbox_path: Path):
    """A new record has its time, has never been dispatched, and is committed."""
    made = record(box, "invoice.ready", {"b": 1, "a": [None, True]}, id="inv-1", clock=clock)

    assert made == {
        "id": "inv-1",
        "event_type": "invoice.ready",
        "payload_json": '{"a":[null,true],"b":1}',
    }
    assert committed(outbox_path) == (
        [
            {
                **made,
                "seq": 1,
                "state": "pending",
                "dispatch_count": 0,
                "created_at": NOW,
                "processed_at": None,
                "dispatched_at": None,
            }
        ],
        [],
    )


def test_record_names_itself(box: sqlite3.Connection):
    """Without an id each record gets one of 32 hexadecimal digits, which a job can bear."""
    first, second = record(box, "made", {}), record(box, "made", {})

    assert first["id"] != second["id"]
    assert len(first["id"]) == 32
    assert int(first["id"], 16)


def test_record_joins_an_open_transaction(box: sqlite3.Connection, outbox_path: Path):
    """It neither begins nor commits; the caller's rollback takes it back."""
    box.execute("BEGIN")
    said: list[str] = []
    box.set_trace_callback(said.append)
    record(box, "made", {}, id="a")
    box.set_trace_callback(None)

    assert {each.split()[0] for each in said} == {"SELECT", "INSERT"}
    assert box.in_transaction
    assert committed(outbox_path) == ([], [])
    box.execute("ROLLBACK")
    assert rows(box) == []


def test_record_commits_with_the_caller(box: sqlite3.Connection, outbox_path: Path):
    """The caller's commit makes the row and its event true together."""
    box.execute("CREATE TABLE orders (id TEXT)")
    box.execute("BEGIN IMMEDIATE")
    box.execute("INSERT INTO orders VALUES ('o-1')")
    record(box, "order.placed", {"id": "o-1"})
    box.execute("COMMIT")

    assert len(committed(outbox_path)[0]) == 1


def test_record_joins_an_implicit_transaction(tmp_path: Path):
    """A connection in Python's own mode has one open after the first change."""
    with closing(sqlite3.connect(tmp_path / "app.db")) as con:
        create_outbox(con)
        con.execute("CREATE TABLE orders (id TEXT)")
        con.execute("INSERT INTO orders VALUES ('o-1')")
        record(con, "order.placed", {})
        con.rollback()

        assert rows(con) == []
        assert con.execute("SELECT count(*) FROM orders").fetchone() == (0,)


def test_record_keeps_the_same_content(box: sqlite3.Connection, outbox_path: Path):
    """The same id and content is the record that is there, in either kind of transaction."""
    first = record(box, "made", {"a": 1, "b": 2}, id="x", clock=clock)

    with unchanged(box, outbox_path):
        assert record(box, "made", {"b": 2, "a": 1}, id="x") == first
    box.execute("BEGIN")
    assert record(box, "made", {"b": 2, "a": 1}, id="x") == first
    assert box.in_transaction
    box.execute("COMMIT")
    assert [row["created_at"] for row in rows(box)] == [NOW]


def test_record_keeps_a_processed_record(box: sqlite3.Connection):
    """Recording again what has taken effect does not make it pending."""
    first = record(box, "made", {}, id="x")
    box.execute("UPDATE outbox SET state = 'processed', processed_at = 'then'")

    assert record(box, "made", {}, id="x") == first
    assert rows(box)[0]["state"] == "processed"


@pytest.mark.parametrize(
    ("event_type", "payload"),
    [("other", {"a": 1}), ("made", {"a": 2}), ("made", {"a": 1.0}), ("made", {"a": True})],
)
def test_record_refuses_other_content(
    box: sqlite3.Connection, outbox_path: Path, event_type: str, payload: object
):
    """The same id with another type or payload is a conflict, and changes nothing."""
    record(box, "made", {"a": 1}, id="x")

    with unchanged(box, outbox_path), pytest.raises(Conflict, match="record x holds another"):
        record(box, event_type, payload, id="x")
    box.execute("BEGIN")
    with pytest.raises(Conflict):
        record(box, event_type, payload, id="x")
    assert box.in_transaction
    box.execute("ROLLBACK")


def test_record_calls_hooks(box: sqlite3.Connection, outbox_path: Path):
    """Of its own transaction both boundaries are told, of a caller's only the first; else none."""
    hook = Hook()
    record(box, "made", {}, id="a", fault=hook)
    assert hook == ["after-record", "after-commit"]
    hook.clear()
    box.execute("BEGIN")
    record(box, "made", {}, id="b", fault=hook)
    box.execute("COMMIT")
    assert hook == ["after-record"]
    hook.clear()
    record(box, "made", {}, id="a", fault=hook)
    assert hook == []
    assert len(committed(outbox_path)[0]) == 2


@pytest.mark.parametrize(("boundary", "left"), [("after-record", 0), ("after-commit", 1)])
def test_record_is_atomic(box: sqlite3.Connection, outbox_path: Path, boundary: str, left: int):
    """A failure before the commit leaves nothing, one after it leaves the record."""
    with pytest.raises(Killed):
        record(box, "made", {}, fault=failing_at(boundary, Killed()))

    assert not box.in_transaction
    assert len(committed(outbox_path)[0]) == left


@pytest.mark.parametrize(
    "event_type",
    [
        "",
        "a" * 129,
        "a b",
        "a\n",
        "é",
        "a\x00",
        Str("made"),
        b"made",
        None,
        1,
        BadRepr(),
    ],
)
def test_record_refuses_event_type(box: sqlite3.Connection, outbox_path: Path, event_type: Any):
    """An event's type is a short word."""
    with unchanged(box, outbox_path), pytest.raises(ValueError, match="event_type must be"):
        record(box, event_type, {})


@pytest.mark.parametrize("event_type", ["a", "a" * 128, "com.example/Order:placed_v-2"])
def test_record_takes_event_type(box: sqlite3.Connection, event_type: str):
    """The shortest, the longest, and every character that a type may hold."""
    assert record(box, event_type, {})["event_type"] == event_type


@pytest.mark.parametrize("id_", [case for case in IDENTIFIERS if case.values[0] is not None])
def test_record_refuses_id(box: sqlite3.Connection, outbox_path: Path, id_: Any):
    """An id is what a job's may be."""
    with unchanged(box, outbox_path), pytest.raises(ValueError, match="id must be a str"):
        record(box, "made", {}, id=id_)


@pytest.mark.parametrize("now", integers(0, 253_402_300_799_999))
def test_record_refuses_clock(box: sqlite3.Connection, outbox_path: Path, now: Any):
    """A time that ISO 8601 cannot write is refused."""
    with unchanged(box, outbox_path), pytest.raises(ValueError, match=r"clock\(\) must be"):
        record(box, "made", {}, clock=lambda: now)


@pytest.mark.parametrize(
    ("now", "text"),
    [
        (0, "1970-01-01T00:00:00.000+00:00"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999+00:00"),
    ],
)
def test_record_takes_the_ends_of_time(box: sqlite3.Connection, now: int, text: str):
    """The first and the last instant have the length of all others."""
    record(box, "made", {}, clock=lambda: now)

    assert rows(box)[0]["created_at"] == text


def nested(depth: int) -> object:
    """Return lists within lists."""
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


LOOP: list[object] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(float("nan"), id="nan"),
        pytest.param([float("inf")], id="inf"),
        pytest.param({1: "a"}, id="int-key"),
        pytest.param({None: "a"}, id="none-key"),
        pytest.param({"a": {True: 1}}, id="bool-key"),
        pytest.param({Str("a"): 1}, id="str-subclass-key"),
        pytest.param((1, 2), id="tuple"),
        pytest.param({"a": {1, 2}}, id="set"),
        pytest.param(b"a", id="bytes"),
        pytest.param(Str("a"), id="str-subclass"),
        pytest.param([Int(1)], id="int-subclass"),
        pytest.param(Float(1), id="float-subclass"),
        pytest.param(Dict(a=1), id="dict-subclass"),
        pytest.param("\ud800", id="lone-surrogate"),
        pytest.param(10**40, id="huge-int"),
        pytest.param(10**5000, id="unprintable-int"),
        pytest.param(nested(100_000), id="deep"),
        pytest.param(LOOP, id="loop"),
        pytest.param(BadRepr(), id="bad-repr"),
        pytest.param(object(), id="object"),
    ],
)
def test_record_refuses_payload(box: sqlite3.Connection, outbox_path: Path, payload: object):
    """What would not come back as it went in is refused, in one short line."""
    with unchanged(box, outbox_path), pytest.raises(ValueError, match=r"^payload must ") as raised:
        record(box, "made", payload)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (None, "null"),
        (0, "0"),
        (1.5, "1.5"),
        ("", '""'),
        ("é\U0001f600", '"é\U0001f600"'),
        ("\u2028\n\x00", '"\u2028\\n\\u0000"'),
        ({"b": {"z": 1, "a": 2}, "a": []}, '{"a":[],"b":{"a":2,"z":1}}'),
        ([[]] * 3, "[[],[],[]]"),
        (nested(100), "[" * 100 + "1" + "]" * 100),
    ],
)
def test_record_writes_canonical_json(box: sqlite3.Connection, payload: object, text: str):
    """Keys are sorted, there are no spaces, and text is text."""
    assert record(box, "made", payload)["payload_json"] == text


def test_record_bounds_the_payload(box: sqlite3.Connection, outbox_path: Path):
    """A mebibyte of JSON is the most; bytes count, not characters."""
    assert record(box, "made", "a" * (2**20 - 2))
    with unchanged(box, outbox_path), pytest.raises(ValueError, match="at most 1048576 bytes"):
        record(box, "made", "a" * (2**20 - 1))
    with pytest.raises(ValueError, match="at most 1048576 bytes of JSON, not 1200002"):
        record(box, "made", "é" * 600_000)


def test_record_leaves_the_payload_alone(box: sqlite3.Connection):
    """The caller's payload is read, not changed."""
    payload = {"b": [1], "a": {"c": None}}
    record(box, "made", payload)

    assert list(payload.items()) == [("b", [1]), ("a", {"c": None})]
