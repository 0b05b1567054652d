"""What somebody who may write to the folder puts in the place of a worker's gates."""

import fcntl
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO

import pytest

from lease import jobs
from lease.dispatcher import Dispatcher
from tests.hostile.test_paths import bound, device, folder, loop, pipe

NOW = 1_000_000


def precious(path: Path) -> None:
    """Let the name lead to a file of the same user."""
    (path.parent / "precious").write_text("dear to me")
    path.symlink_to("precious")


def missing(path: Path) -> None:
    """Let the name lead to where no file is yet."""
    path.symlink_to("made-by-you")


def held(path: Path) -> None:
    """Hold the gate for ever."""
    HOLDING.append(path.open("w"))
    fcntl.flock(HOLDING[-1], fcntl.LOCK_EX)


HOLDING: list[IO[str]] = []


@pytest.mark.parametrize("gate", ["gate1", "gate2"])
@pytest.mark.parametrize("plant", [folder, pipe, bound, device, loop, precious, missing, held])
def test_gate_that_was_planted_stops_no_worker(
    tmp_path: Path, plant: Callable[[Path], None], gate: str
):
    """The gates bring order alone: without them the jobs are done, and nothing else is touched."""
    path = tmp_path / "q.db"
    with closing(jobs.open_queue(path)) as con:
        events = [{"id": f"job-{number}", "qty": 1} for number in range(4)]
        jobs.enqueue_many(con, events, NOW, 1000)
    plant(tmp_path / f"q.db-{gate}")

    tally = Dispatcher(path, lambda _event: True, owner="w", clock=lambda: NOW).run("drained")
    while HOLDING:
        HOLDING.pop().close()
    assert tally.done == 4
    assert not (tmp_path / "made-by-you").exists()
    assert plant is not precious or (tmp_path / "precious").read_text() == "dear to me"
