"""`lease demo`: its report, its exit code, and that it leaves nothing behind."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from lease import demo as scenario
from lease.demo import DemoError, Evidence, JobEvidence
from lease.demo._evidence import Kill
from tests.support.cli import ended, lease, receiving, started, until

KILL = Kill("job-2", -9, "leased", 1, committed=True)
SOUND = Evidence(
    [
        JobEvidence("job-1", 1, "done", 1, 1, 1, (1,), (1,)),
        JobEvidence("job-2", 2, "done", 2, 2, 2, (2,), (2,)),
    ],
    KILL,
    [],
)
DOUBLED = SOUND._replace(jobs=[SOUND.jobs[0], SOUND.jobs[1]._replace(effects=(2, 2))])
UNSEEN = Evidence(
    [job._replace(requests=None, inbox=None, effects=None) for job in SOUND.jobs],
    KILL._replace(committed=None),
    [],
)


def played(evidence: Evidence) -> Any:
    """Stand in for the story with its outcome."""

    def run_demo(folder: str, to: str | None, tell: Any) -> Evidence:
        tell(0.0, "queue", "2 jobs")
        tell(1.5, "SIGKILL", "first is dead")
        return evidence

    return patch.object(scenario, "run_demo", run_demo)


def test_demo_reports_evidence_and_verdict() -> None:
    """The steps, a table, each invariant, and one line that says it."""
    with played(SOUND):
        code, out, err = lease("demo")

    assert (code, err) == (0, "")
    assert out == (
        "  0.0 s  queue        2 jobs\n"
        "  1.5 s  SIGKILL      first is dead\n"
        "\n"
        "             JOBS  DONE  CLAIMS  SENT  REQUESTS  INBOX ROWS  EFFECTS\n"
        "job-2           1     1       2     2         2           1        1\n"
        "the other 1     1     1       1     1         1           1        1\n"
        "\n"
        "holds  the first dispatcher was killed with job-2 sent and not recorded\n"
        "holds  job-2 was taken over under a higher token and sent again\n"
        "holds  every job is done\n"
        "holds  each claim was sent once\n"
        "holds  the receiver had committed job-2 before the kill\n"
        "holds  job-2 was requested again and still has one effect\n"
        "holds  each job has one inbox row, of its quantity\n"
        "holds  each job has one effect, of its quantity\n"
        "holds  no job was requested more often than it was sent\n"
        "holds  the receiver holds nothing else\n"
        "\n"
        "HELD: job-2 was sent twice and had one effect.\n"
    )


def test_demo_fails_where_an_invariant_does() -> None:
    """A doubled effect is seen, said, and exit code 1."""
    with played(DOUBLED):
        code, out, _ = lease("demo")

    assert code == 1
    assert "FAILS  each job has one effect, of its quantity\n" in out
    assert out.endswith("FAILED: the evidence does not bear out the promise.\n")


def test_demo_says_what_it_cannot_see() -> None:
    """Of somebody's own receiver only the queue's side is proved."""
    with played(UNSEEN):
        code, out, _ = lease("demo", "--to", "http://127.0.0.1:9/")

    assert code == 0
    assert "REQUESTS" not in out
    assert out.endswith(
        "HELD, as far as the queue can tell: job-2 was sent twice.\n"
        "Now look at your receiver: it must have made one effect of job-2.\n"
    )


@pytest.mark.parametrize(
    ("evidence", "verdict", "code"), [(SOUND, "held", 0), (DOUBLED, "failed", 1)]
)
def test_demo_prints_json(evidence: Evidence, verdict: str, code: int) -> None:
    """Nothing but the one value goes to stdout."""
    with played(evidence):
        ran = lease("demo", "--json")

    assert ran.code == code
    assert ran.json["verdict"] == verdict
    assert ran.json["killed"] == {
        "job": "job-2",
        "code": -9,
        "status": "leased",
        "token": 1,
        "committed": True,
    }
    assert ran.json["checks"][0] == {
        "text": "the first dispatcher was killed with job-2 sent and not recorded",
        "holds": True,
    }
    assert [job["id"] for job in ran.json["jobs"]] == ["job-1", "job-2"]
    assert ran.json["strangers"] == []
    assert ran.json["seconds"] >= 0


def test_demo_tells_why_it_could_not_be_played() -> None:
    """That is exit code 1 and one line."""
    with patch.object(scenario, "run_demo", side_effect=DemoError("no luck")):
        assert lease("demo") == (
            1,
            "",
            "lease: the demo could not be played to its end: no luck\n",
        )


def test_demo_keeps_its_files_where_it_is_told(tmp_path: Path) -> None:
    """The folder is made, and the report says how to look at it."""
    folder = tmp_path / "a" / "new"
    with played(SOUND):
        ran = lease("demo", "--keep", folder)

    assert folder.is_dir()
    assert ran.out.endswith(f"\nLook for yourself: lease jobs {folder}/queue.db\n")


def test_demo_touches_no_folder_that_is_in_use(tmp_path: Path) -> None:
    """Nobody's files are mixed with the demo's."""
    (tmp_path / "mine").touch()

    assert lease("demo", "--keep", tmp_path) == (
        1,
        "",
        f"lease: {tmp_path} is not empty; name another folder\n",
    )
    assert lease("demo", "--keep", tmp_path / "mine") == (
        1,
        "",
        f"lease: {tmp_path}/mine cannot be used: File exists\n",
    )


def test_demo_refuses_what_is_no_url() -> None:
    """Before anything is started."""
    code, out, err = lease("demo", "--to", "nonsense")

    assert (code, out) == (2, "")
    assert err.startswith("lease: Invalid value for --to: it must be a str like https://host")


def test_demo_without_its_extra_tells_what_to_install() -> None:
    """The command line alone has no receiver to show."""
    with patch.dict(sys.modules, {"lease.demo": None}), pytest.raises(ModuleNotFoundError):
        lease("demo")
    with patch.dict(sys.modules, {"httpcore": None}):
        for name in [
            each for each in sys.modules if each.startswith(("lease.demo", "lease.deliv"))
        ]:
            del sys.modules[name]
        code, _, err = lease("demo")

    assert code == 2
    assert err.startswith("lease: 'lease demo' needs the http extra: pip install ")


# The real thing.


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files with a space in its name, empty again afterwards."""
    folder = tmp_path / "temp orary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def processes(folder: Path) -> list[int]:
    """Return the processes that were told of a folder."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                command = Path("/proc", entry, "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(folder) in command:
                found.append(int(entry))
    return found


def test_demos_hold_side_by_side(temporary: Path) -> None:
    """Two at a time do not meet; each proves its promise and leaves nothing."""
    with started("demo") as one, started("demo") as two:
        ran = [ended(one), ended(two)]

    for code, out, err in ran:
        assert (code, err) == (0, "")
        assert out.endswith("\nHELD: job-08 was sent twice and had one effect.\n")
        assert out.count("\nholds  ") == 10
    assert processes(temporary) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_interrupted_leaves_nothing(temporary: Path, number: int) -> None:
    """Its children and its folder go with it."""
    with started("demo") as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any("first and second are up" in line for line in lines)
        assert len(processes(temporary)) == 3
        process.send_signal(number)
        assert process.wait(60) == 1
        assert process.stderr is not None
        assert process.stderr.read() == "\nlease: interrupted\n"

    assert processes(temporary) == []


def test_a_demo_that_is_killed_leaves_no_process(tmp_path: Path, monkeypatch: Any) -> None:
    """Even SIGKILL of the parent ends the children; only the folder stays."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with started("demo") as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any("first and second are up" in line for line in lines)
        process.kill()
        process.wait(60)

    until(lambda: processes(tmp_path) == [])


def test_demo_proves_somebody_s_own_receiver(tmp_path: Path) -> None:
    """From the command line, against a receiver that runs elsewhere."""
    with receiving(tmp_path / "theirs.db") as url:
        code, out, err = lease("demo", "--to", url)

    assert (code, err) == (0, "")
    assert re.search(r"it must have made one effect of demo-[0-9a-f]{8}-08\.\n$", out)
