"""A dispatcher on the queue of the test, with a clock that jumps over every wait."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lease import Event, jobs
from lease.dispatcher import Dispatcher, _run
from tests.support.dispatcher import Start, Time
from tests.support.queue import without_waiting


@pytest.fixture
def time() -> Time:
    """The clock."""
    return Time()


@pytest.fixture
def start(queue_path: Path, con: sqlite3.Connection, time: Time) -> Start:
    """Make a dispatcher."""

    def make(send: Callable[[Event], object], **options: Any) -> Dispatcher:
        defaults: dict[str, Any] = {
            "owner": "worker-b",
            "clock": time,
            "jitter": lambda: 1.0,
            "poll_ms": 1,
            "on_idle": time.wait,
        }
        return Dispatcher(queue_path, send, **(defaults | options))

    return make


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let SQLite wait for no lock, and a run give up after its third try."""
    opened = jobs.open_queue

    def open_queue(path: Path, **options: Any) -> sqlite3.Connection:
        con = opened(path, **options)
        without_waiting(con)
        return con

    monkeypatch.setattr(jobs, "open_queue", open_queue)
    monkeypatch.setattr(_run, "_TRIES", 3)
