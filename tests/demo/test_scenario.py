"""The story played with real processes, against its own receiver and somebody else's."""

import os
from pathlib import Path
from unittest.mock import ANY

import pytest

from lease.demo import DemoError, judge, run_demo
from tests.support.cli import receiving
from tests.support.http import answer, answering, rows, server
from tests.support.queue import committed


def test_run_demo_plays_the_story_to_its_end(tmp_path: Path) -> None:
    """The steps are told in their order, and the evidence bears out the promise."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    steps: list[tuple[float, str, str]] = []

    evidence = run_demo(str(folder), tell=lambda *step: steps.append(step))

    assert [check.text for check in judge(evidence) if not check.holds] == []
    # On a busy machine the lease may end before the second has done all the rest.
    waits = [text for _, who, text in steps if who == "second" and text.startswith("has deliv")]
    assert all("jobs; the lease on job-08 ends in " in text for text in waits)
    assert [(who, text) for _, who, text in steps if text not in waits] == [
        ("receiver", ANY),
        ("queue", "36 jobs committed to queue.db"),
        ("dispatchers", "first and second are up"),
        ("first", "has delivered 7 jobs and sends job-08"),
        ("receiver", "has committed job-08 and answered that it is accepted"),
        ("SIGKILL", "first is dead, and has not recorded it"),
        ("queue", "still has job-08 leased, under token 1"),
        ("second", "takes job-08 over and sends it again"),
        ("second", "records job-08 as done, under token 2"),
    ]
    times = [at_s for at_s, _, _ in steps]
    assert times == sorted(times)
    assert evidence.kill == ("job-08", -9, "leased", 1, True)
    assert sorted(os.listdir(folder)) == [
        "first.log",
        "inbox.db",
        "queue.db",
        "queue.db-gate1",
        "queue.db-gate2",
        "receiver.log",
        "second.log",
    ]


def test_run_demo_proves_somebody_s_own_receiver(tmp_path: Path) -> None:
    """Its database is left to its owner; the ids are of this run alone."""
    inbox = tmp_path / "theirs.db"
    with receiving(inbox) as url:
        evidence = run_demo(str(tmp_path), url)

    assert all(check.holds for check in judge(evidence))
    assert evidence.kill.committed is None
    assert {job.requests for job in evidence.jobs} == {None}
    listed, effects = rows(inbox)
    assert len(listed) == len(effects) == 36
    assert [row for row in listed if row[2] > 1] == [(evidence.kill.job, 8, 2)]
    assert evidence.kill.job.startswith("demo-")
    assert not (tmp_path / "inbox.db").exists()


def test_run_demo_gives_up_on_a_receiver_that_accepts_nothing(tmp_path: Path) -> None:
    """What it answers is told, and after a few jobs the demo ends."""
    refusing = answering(answer("404 Not Found", b""))
    steps: list[tuple[float, str, str]] = []

    with server(*[refusing] * 5) as url, pytest.raises(DemoError, match=r"accept the jobs: .* 404"):
        run_demo(str(tmp_path), url, lambda *step: steps.append(step))

    assert [who for _, who, text in steps if "could not deliver" in text] == ["first"] * 5
    jobs, _ = committed(tmp_path / "queue.db")
    assert {job["status"] for job in jobs} <= {"dead", "pending", "leased"}
