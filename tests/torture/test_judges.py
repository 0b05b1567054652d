"""Every judge of the torture run sees the wrong that it is there for, and no other."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lease import jobs
from tests.support.queue import put_dead
from tests.support.torture import noted, noting
from tests.torture.judges import (
    Audit,
    Batch,
    batches_of,
    counted,
    wrong_with_audits,
    wrong_with_batches,
    wrong_with_file,
    wrong_with_looks,
)


def job(seq: int, token: int, attempts: int) -> dict[str, Any]:
    return {"seq": seq, "id": f"job-{seq}", "token": token, "attempts": attempts}


#: Claimed twice, released, claimed once more; and one that was never dead.
JOBS = [job(1, 3, 1), job(2, 3, 1), job(3, 5, 5)]
AUDITS = [Audit(1, "job-1", 2, "bulk-1-0-0"), Audit(2, "job-2", 2, "bulk-1-0-0")]


def test_a_release_with_its_audit_row_is_right():
    assert wrong_with_audits(AUDITS, JOBS) == []


@pytest.mark.parametrize(
    ("audits", "fault"),
    [
        pytest.param([*AUDITS, AUDITS[0]], "twice or too early", id="twice at one token"),
        pytest.param([Audit(1, "job-3", 6, "x")], "twice or too early", id="ahead of the token"),
        pytest.param(AUDITS[:1], "without an audit row", id="an audit row is missing"),
        pytest.param(
            [*AUDITS, Audit(3, "job-3", 5, "x")], "without an audit row", id="one too many"
        ),
    ],
)
def test_a_release_and_an_audit_row_go_together(audits: list[Audit], fault: str):
    assert fault in wrong_with_audits(audits, JOBS)[0]


def test_what_must_get_done_is_never_released():
    audits = [Audit(1, "plain-1", 1, "again")]
    lasting = {"seq": 1, "id": "plain-1", "token": 2, "attempts": 1}

    assert "had been dead" in wrong_with_audits(audits, [lasting])[0]


def batch(ids: str, releases: list[str] | None, *, before: int = 0, number: int = 0) -> Batch:
    names = [f"job-{each}" for each in ids]
    return Batch("bulk-1-0", f"bulk-1-0-{number}", before, names, releases)


BOTH = ["redriven", "redriven"]


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([batch("12", BOTH)], id="whole and told"),
        pytest.param([batch("12", None)], id="killed after the commit"),
        pytest.param([batch("12", BOTH), batch("3", None, number=1)], id="killed before it"),
        pytest.param([batch("12", BOTH), batch("3", ["done"], number=1)], id="nothing was dead"),
    ],
)
def test_a_whole_batch_is_right(batches: list[Batch]):
    assert wrong_with_batches(batches, AUDITS, JOBS) == []


@pytest.mark.parametrize(
    ("batches", "fault"),
    [
        pytest.param([batch("12", ["redriven", "done"])], "other than", id="more than told"),
        pytest.param([batch("123", [*BOTH, "redriven"])], "other than", id="less than told"),
        pytest.param([batch("3", ["redriven"], number=1)], "other than", id="told and gone"),
        pytest.param([batch("123", None)], "a part of a batch", id="torn"),
        pytest.param([batch("21", None)], "turned back", id="backwards"),
        pytest.param([batch("12", BOTH), batch("2", None, number=1)], "turned back", id="again"),
        pytest.param([batch("129", None)], "turned back", id="no such job"),
    ],
)
def test_half_a_batch_is_wrong(batches: list[Batch], fault: str):
    assert fault in wrong_with_batches(batches, AUDITS, JOBS)[0]


@pytest.mark.parametrize(("before", "faults"), [(0, 0), (1, 1)])
def test_another_may_have_come_first_but_not_before_it_was_read(before: int, faults: int):
    audits = [Audit(1, "job-3", 2, "again"), Audit(2, "job-1", 2, "bulk-1-0-0")]

    found = wrong_with_batches([batch("13", None, before=before)], audits, JOBS)

    assert len(found) == faults


def test_another_that_comes_later_explains_nothing():
    audits = [Audit(1, "job-1", 2, "bulk-1-0-0"), Audit(2, "job-3", 2, "again")]

    assert "a part of a batch" in wrong_with_batches([batch("13", None)], audits, JOBS)[0]


LOOK = jobs.Stats(
    jobs=10,
    pending=1,
    leased=2,
    done=4,
    dead=3,
    dead_reasons={"deadline": 1, "exhausted": 1, "permanent": 1},
    claims=8,
    redrives=5,
    next_due_ms=None,
)


def look(**changes: Any) -> jobs.Stats:
    return {**LOOK, **changes}  # type: ignore[typeddict-item]  # the names are those of the keys


def test_looks_that_grow_are_right():
    later = look(pending=0, leased=0, dead=6, dead_reasons={"deadline": 6}, claims=9, redrives=6)

    assert wrong_with_looks([LOOK, LOOK, later]) == []


@pytest.mark.parametrize(
    ("after", "fault"),
    [
        (look(pending=0), "states that do not add up"),
        (look(dead_reasons={"deadline": 2}), "reasons that do not add up"),
        (look(pending=0, leased=5, dead=1, dead_reasons={"deadline": 1}), "fewer claims than"),
        (look(jobs=9, pending=0), "jobs fell"),
        (look(done=3, pending=2), "done fell"),
        (look(claims=7), "claims fell"),
        (look(redrives=4), "redrives fell"),
    ],
)
def test_looks_that_contradict_are_wrong(after: jobs.Stats, fault: str):
    assert fault in wrong_with_looks([LOOK, after])[0]


def test_rows_are_counted_as_stats_tell_them(con: sqlite3.Connection):
    rows = [
        put_dead(con, id=f"job-{reason}", token=token, reason=reason)
        for token, reason in enumerate(("deadline", "exhausted", "permanent"))
    ]

    assert counted(rows, []) == jobs.stats(con)
    assert counted(rows, AUDITS)["redrives"] == 2


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_file_keeps_its_journal(tmp_path: Path, mode: str):
    with closing(sqlite3.connect(tmp_path / "queue.db")) as con:
        con.execute(f"PRAGMA journal_mode = {mode}")
        con.execute("CREATE TABLE t (a)")

        assert wrong_with_file(con, mode) == []
        assert wrong_with_file(con, "truncate") == [f"the journal became {mode}"]


def test_notes_are_read_but_for_a_torn_line(tmp_path: Path):
    notes = tmp_path / "notes"
    say = noting(str(notes))
    plan = {"walk": "bulk-1-0", "note": "bulk-1-0-0", "before": 3, "ids": ["job-1", "job-2"]}
    say(plan)
    say(BOTH)
    say(plan | {"note": "bulk-1-0-1"})
    with notes.open("a") as torn:
        torn.write('["redri')

    assert batches_of(noted(notes)) == [
        batch("12", BOTH, before=3),
        batch("12", None, before=3, number=1),
    ]
