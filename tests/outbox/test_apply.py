"""apply: the effect and the record's transition, both or neither, once."""

import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lease.outbox import Record, apply, pending, record
from tests.support.outbox import (
    NOW,
    Effects,
    Killed,
    clock,
    committed,
    deliveries,
    no_effect,
    rows,
    unchanged,
)
from tests.support.queue import ERRORS, Hook, failing_at
from tests.support.refused import Dict, Str, integers, within

HINT: Record = {"id": "a", "event_type": "made", "payload_json": '{"n":1}'}


@pytest.fixture
def made(box: sqlite3.Connection) -> Record:
    """One pending record."""
    return record(box, "made", {"n": 1}, id="a", clock=lambda: 1)


def test_apply_makes_the_effect(box: sqlite3.Connection, outbox_path: Path, made: Record):
    """Effect, transition and delivery are committed, with the time of processing."""
    effects = Effects()

    assert apply(box, made, effects, clock=clock) is True
    assert effects == [HINT]
    assert not box.in_transaction
    (row,), delivered = committed(outbox_path)
    assert (row["state"], row["processed_at"]) == ("processed", NOW)
    assert delivered == [("a", '{"n":1}', NOW)]
    assert box.execute("SELECT id, body FROM effects").fetchall() == [("a", '{"n":1}')]


def test_apply_ignores_a_duplicate(box: sqlite3.Connection, outbox_path: Path, made: Record):
    """A later delivery of the same record changes nothing and says so."""
    effects = Effects()
    apply(box, made, effects, clock=clock)

    with unchanged(box, outbox_path):
        assert apply(box, made, effects) is False
    assert len(effects) == 1


def test_apply_calls_the_effect_in_its_transaction(
    box: sqlite3.Connection, outbox_path: Path, made: Record
):
    """The effect finds the record processed, on the connection it was given, not yet committed."""
    seen: list[Any] = []

    def effect(con: sqlite3.Connection, _record: Record) -> None:
        seen.extend([con is box, con.in_transaction, rows(con)[0]["state"]])
        seen.append(committed(outbox_path)[0][0]["state"])

    apply(box, made, effect)

    assert seen == [True, True, "processed", "pending"]


@pytest.mark.parametrize("kind", ERRORS)
def test_apply_leaves_pending_what_failed(
    box: sqlite3.Connection, outbox_path: Path, made: Record, kind: type[BaseException]
):
    """Whatever the effect raises comes out as it is, and takes its writes back."""
    error = kind("no")
    effects = Effects()

    def effect(con: sqlite3.Connection, each: Record) -> None:
        effects(con, each)
        raise error

    with unchanged(box, outbox_path), pytest.raises(kind) as raised:
        apply(box, made, effect)
    assert raised.value is error
    assert pending(box) == [made]
    assert apply(box, made, Effects()) is True


@pytest.mark.parametrize("word", ["COMMIT", "ROLLBACK"])
def test_apply_refuses_an_effect_that_ends_it(box: sqlite3.Connection, made: Record, word: str):
    """An effect that commits or rolls back by itself is told; after a commit it is not repeated."""
    with pytest.raises(sqlite3.ProgrammingError, match="the effect of record a ended the trans"):
        apply(box, made, lambda con, _record: con.execute(word))

    assert not box.in_transaction
    assert apply(box, made, no_effect) is (word == "ROLLBACK")
    assert len(deliveries(box)) == 1


def test_apply_lets_the_effect_record(box: sqlite3.Connection, made: Record):
    """An effect may record an event of its own, which commits with it."""
    apply(box, made, lambda con, _record: record(con, "next", {}, id="b"))

    assert [(row["id"], row["state"]) for row in rows(box)] == [
        ("a", "processed"),
        ("b", "pending"),
    ]


@pytest.mark.parametrize(
    ("key", "value"), [("event_type", "other"), ("payload_json", '{"n":2}'), ("payload_json", "x")]
)
def test_apply_obeys_the_row(
    box: sqlite3.Connection,
    made: Record,
    caplog: pytest.LogCaptureFixture,
    key: str,
    value: str,
):
    """A copy that differs is reported without its content; the effect gets the row's."""
    effects = Effects()
    hint: Any = {**made, key: value}

    assert apply(box, hint, effects) is True
    assert effects == [made]
    (entry,) = caplog.record_tuples
    assert entry == (
        "lease.outbox",
        logging.WARNING,
        "the delivered copy of record a differs from the outbox, which was obeyed",
    )


def test_apply_ignores_the_unknown(
    box: sqlite3.Connection, outbox_path: Path, caplog: pytest.LogCaptureFixture
):
    """A delivery without a record has no effect and is reported."""
    effects = Effects()

    with unchanged(box, outbox_path):
        assert apply(box, HINT, effects) is False
    assert effects == []
    assert caplog.messages == ["record a was delivered but is not in the outbox; ignored"]


def test_apply_is_quiet_about_the_usual(
    box: sqlite3.Connection, made: Record, caplog: pytest.LogCaptureFixture
):
    """A delivery and its duplicate are nothing to report."""
    apply(box, made, no_effect)
    apply(box, made, no_effect)

    assert caplog.messages == []


def test_apply_gives_the_effect_its_own_copy(box: sqlite3.Connection, made: Record):
    """What the effect does to its record does not reach the delivery row or the caller's hint."""

    def effect(_con: sqlite3.Connection, each: Record) -> None:
        each.clear()  # type: ignore[attr-defined]  # a dict at run time

    apply(box, made, effect)

    assert made == HINT
    assert deliveries(box)[0][:2] == ("a", '{"n":1}')


def test_apply_calls_hooks(box: sqlite3.Connection, made: Record):
    """Three boundaries on the way to an effect, none for a duplicate."""
    hook = Hook()
    apply(box, made, lambda _con, _record: hook("effect"), fault=hook)
    assert hook == ["after-mark", "effect", "after-effect", "after-commit"]
    hook.clear()
    apply(box, made, no_effect, fault=hook)
    assert hook == []


@pytest.mark.parametrize(
    ("boundary", "state"),
    [("after-mark", "pending"), ("after-effect", "pending"), ("after-commit", "processed")],
)
def test_apply_is_atomic(
    box: sqlite3.Connection, outbox_path: Path, made: Record, boundary: str, state: str
):
    """A death before the commit leaves nothing of it, one after it leaves all."""
    with pytest.raises(Killed):
        apply(box, made, Effects(), fault=failing_at(boundary, Killed()))

    assert not box.in_transaction
    (row,), delivered = committed(outbox_path)
    assert (row["state"], len(delivered)) == (state, state == "processed")


def test_apply_refuses_an_open_transaction(box: sqlite3.Connection, made: Record):
    """Whose commit would make the effect true must be clear."""
    box.execute("BEGIN")
    with pytest.raises(sqlite3.ProgrammingError, match="already has an open transaction"):
        apply(box, made, no_effect)
    assert box.in_transaction
    box.execute("ROLLBACK")


@pytest.mark.parametrize(
    "hint",
    [
        None,
        [],
        {},
        Dict(HINT),
        *(pytest.param({k: HINT[k] for k in HINT if k != key}, id=f"no-{key}") for key in HINT),
        *within(dict(HINT), "id", [pytest.param("a b", id="space"), pytest.param(1, id="int")]),
        *within(dict(HINT), "event_type", [pytest.param("", id="empty")]),
        *within(dict(HINT), "payload_json", [pytest.param(Str("{}"), id="str-subclass")]),
    ],
)
def test_apply_refuses_what_is_no_record(box: sqlite3.Connection, outbox_path: Path, hint: Any):
    """A delivery has three texts; this much is checked before the outbox is asked."""
    with unchanged(box, outbox_path), pytest.raises(ValueError, match="must be a"):
        apply(box, hint, no_effect)


@pytest.mark.parametrize("now", integers(0, 253_402_300_799_999))
def test_apply_refuses_clock(box: sqlite3.Connection, outbox_path: Path, made: Record, now: Any):
    """A time that ISO 8601 cannot write is refused before the effect."""
    with unchanged(box, outbox_path), pytest.raises(ValueError, match=r"clock\(\) must be"):
        apply(box, made, no_effect, clock=lambda: now)
