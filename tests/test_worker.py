"""The contract's face: its names, its signatures, and the ways in which a checker loads it."""

import importlib.util
import inspect
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import lease
from lease import CONTRACT, WIDE, jobs, worker

SIGNATURES = {
    "retry_delay": "(attempt, base_ms, cap_ms, jitter)",
    "open_queue": "(path)",
    "enqueue": "(con, event, now_ms, ttl_ms, max_attempts=3)",
    "claim": "(con, owner, now_ms, lease_ms=1000, fault=None)",
    "finish": "(con, ticket, outcome, now_ms, delay_ms=0, fault=None)",
    "redrive": "(con, job_id, now_ms, ttl_ms, note, fault=None)",
    "run_once": "(con, owner, clock, send, jitter, lease_ms=1000)",
    "run_file": "(path, owner, clock, send, jitter, lease_ms=1000)",
}
EXCEPTIONS = ["Conflict", "Retryable", "Permanent", "BadAck"]


@pytest.mark.parametrize("name", SIGNATURES)
def test_worker_has_the_contracts_signature(name: str) -> None:
    """Names, order and defaults are the contract's; each may be passed by place or by name."""
    signature = inspect.signature(getattr(worker, name))
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]

    assert str(inspect.Signature(bare)) == SIGNATURES[name]
    assert {each.kind for each in bare} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}


def test_worker_exports_the_contracts_names() -> None:
    """The contract's eight functions and four exceptions, and nothing else."""
    assert sorted(worker.__all__) == sorted([*SIGNATURES, *EXCEPTIONS])


@pytest.mark.parametrize("name", worker.__all__)
def test_lease_exports_the_same_objects(name: str) -> None:
    """What `lease.worker` has under a name of the contract, `lease` has too."""
    assert getattr(lease, name) is getattr(worker, name)


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_exceptions_are_unrelated(name: str) -> None:
    """Each is an Exception of its own, so that no handler of one catches another."""
    assert getattr(worker, name).__bases__ == (Exception,)


@pytest.mark.parametrize(("step", "name"), list(enumerate(SIGNATURES, 1)))
def test_docstring_names_its_step(step: int, name: str) -> None:
    """A reader finds the step of the contract that a function is."""
    assert f"(step {step})" in getattr(worker, name).__doc__


@pytest.mark.parametrize("name", SIGNATURES)
def test_function_is_one_call_of_the_general_verb(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Every argument is passed on in its place, with the contract's limits."""
    calls: list[Any] = []

    def verb(*args: object, **options: object) -> object:
        calls.append((args, options))
        return calls

    monkeypatch.setattr(jobs, name, verb)
    given = tuple(
        f"<{parameter}>" for parameter in inspect.signature(getattr(worker, name)).parameters
    )

    assert getattr(worker, name)(*given) is calls
    assert calls == [(given, {} if name == "open_queue" else {"limits": CONTRACT})]


@pytest.mark.parametrize("name", SIGNATURES)
def test_general_verb_takes_the_contracts_arguments(name: str) -> None:
    """The general verb has the same parameters and defaults; what it adds is by name alone."""
    parameters = inspect.signature(getattr(jobs, name)).parameters.values()
    shared = [each for each in parameters if each.kind is not each.KEYWORD_ONLY]
    added = {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}

    assert shared == list(inspect.signature(getattr(worker, name)).parameters.values())
    assert inspect.Parameter.empty not in added.values()
    assert (added.get("limits") is WIDE) == (name != "open_queue")
    if name.startswith("run_"):
        assert (added["base_ms"], added["cap_ms"]) == (100, 1000)


@pytest.mark.parametrize("attempts", [15, 16])
def test_a_wide_job_is_finished_up_to_attempt_16(tmp_path: Path, attempts: int) -> None:
    """A claim hides no job that was taken in with more attempts; beyond, `jobs.finish` settles."""
    with closing(worker.open_queue(tmp_path / "q.db")) as con:
        jobs.enqueue(con, {"id": "a", "qty": 1}, 0, 1000, 17)
        for now_ms in range(attempts):
            worker.claim(con, "w", now_ms, 1)
        ticket = worker.claim(con, "w", attempts, 100)

        assert ticket["attempt"] == attempts + 1
        if attempts + 1 > CONTRACT.max_attempts:
            with pytest.raises(ValueError, match="ticket attempt must be an int from 1 to 16"):
                worker.finish(con, ticket, "ok", attempts)
            assert jobs.finish(con, ticket, "ok", attempts) == "done"
        else:
            assert worker.finish(con, ticket, "ok", attempts) == "done"


def test_worker_loads_from_its_file_under_another_name() -> None:
    """A checker that loads the file by its path gets the same classes as everybody else."""
    spec = importlib.util.spec_from_file_location("checked_submission", worker.__file__)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)

    assert loaded is not worker
    assert [getattr(loaded, name) for name in EXCEPTIONS] == [
        getattr(worker, name) for name in EXCEPTIONS
    ]
    assert "checked_submission" not in sys.modules
    assert sorted(loaded.__all__) == sorted(worker.__all__)


PACKAGE = Path(lease.__file__).parent

FROM_THE_FOLDER = """
import sys
sys.path.insert(0, sys.argv[1])
import worker, queue, http.client, lease
assert worker.__file__.startswith(sys.argv[1])
assert not queue.__file__.startswith(sys.argv[1])
assert worker is not lease.worker
"""
FROM_THE_FILE = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("submission", sys.argv[1] + "/worker.py")
worker = importlib.util.module_from_spec(spec)
sys.modules["submission"] = worker
spec.loader.exec_module(worker)
import lease
"""
ROUND = """
assert worker.Retryable is lease.Retryable and worker.BadAck is lease.BadAck
assert worker.Permanent is lease.Permanent and worker.Conflict is lease.Conflict
def later(event):
    raise worker.Retryable
con = worker.open_queue("queue.db")
assert worker.enqueue(con, {"id": "a", "qty": 1}, 0, 1000)
con.close()
clock = iter([0, 0, 0, 0]).__next__
assert worker.run_file("queue.db", "w", clock, later, 0)["status"] == "pending"
assert worker.run_file("queue.db", "w", clock, lambda event: True, 0)["status"] == "done"
print("round trip")
"""


@pytest.mark.parametrize(
    "way",
    [pytest.param(FROM_THE_FOLDER, id="folder"), pytest.param(FROM_THE_FILE, id="file")],
)
def test_worker_works_in_a_process_that_loads_it_alone(tmp_path: Path, way: str) -> None:
    """Its folder may stand on `sys.path`, where it hides no standard module, or its file be run."""
    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", way + ROUND, PACKAGE],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (child.returncode, child.stdout, child.stderr) == (0, "round trip\n", "")


@pytest.mark.parametrize("name", SIGNATURES)
def test_function_is_typed(name: str) -> None:
    """Every parameter and result is annotated."""
    function = getattr(worker, name)
    names = {*inspect.signature(function).parameters, "return"}

    assert names == set(function.__annotations__)
