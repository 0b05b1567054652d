"""What tests of hostile input share: every command, its one clear error, and a nobody to run as."""

import json
import os
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from typing import Any

from lease import jobs
from tests.support.cli import Ran, lease

#: Every command on an existing queue, as words around its path.
ON_QUEUE = {
    "stats": ("stats", "--json"),
    "jobs": ("jobs",),
    "jobs --json": ("jobs", "--json"),
    "enqueue": ("enqueue", "--id", "new", "--qty", "1"),
    "redrive": ("redrive", "job-1", "--note", "n"),
    "doctor": ("doctor",),
    "backup": ("backup", "/dev/null/copy"),
    "work": ("work", "--to", "http://127.0.0.1:9/", "--once", "--timeout", "1s"),
}

#: Likewise, where the file is made if it is missing.
ON_NEW = {
    "init": ("init",),
    "outbox init": ("outbox", "init"),
    "receive": ("receive", "--db"),
}

#: On a database that has an outbox.
ON_OUTBOX = {
    "outbox stats": ("outbox", "stats"),
    "outbox pending": ("outbox", "pending"),
    "outbox redrive": ("outbox", "redrive", "job-1", "--note", "n"),
    "outbox prune": ("outbox", "prune", "--older-than", "1d"),
    "outbox deliver": ("outbox", "deliver", "--to", "http://127.0.0.1:9/", "--drain"),
}

COMMANDS = ON_QUEUE | ON_NEW | ON_OUTBOX

#: No command may wait longer for a file: a lock is waited for a second at a time.
PATIENCE_S = 10


def ran(name: str, path: Path) -> Ran:
    """Run a command on a path; it must not hang."""
    words = COMMANDS[name]
    # Where the path stands among the words; the group of the outbox has two.
    at = 2 if words[0] == "outbox" or words[-1] == "--db" else 1
    started_s = time.monotonic()
    found = lease(*words[:at], path, *words[at:])
    assert time.monotonic() < started_s + PATIENCE_S, f"{name} hung"
    return found


@cache
def warm() -> None:
    """Import what the commands import: nobody may not read where Python itself lies."""
    for name in ("secrets", "tempfile", "lease.db.apply", "lease.delivery", "lease.inbox.http"):
        import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        jobs.open_queue(f"{folder}/q.db").close()
        for name in COMMANDS:
            if name != "receive":
                ran(name, Path(folder, "q.db"))
        ran("receive", Path(folder))


def complaint(found: Ran) -> str:
    """Return the one line that a failed command says, which no terminal takes for more."""
    assert found.code == 1
    assert found.out == ""
    assert found.err.startswith("lease: ")
    assert found.err.endswith("\n")
    assert found.err[:-1].isprintable()
    return found.err.removeprefix("lease: ")[:-1]


def listing(folder: Path) -> dict[str, Any]:
    """Return what a folder holds: names, kinds, rights, and the bytes of what is ordinary."""
    return {
        each.name: (
            each.lstat().st_mode,
            each.read_bytes() if each.is_file() and not each.is_symlink() else None,
        )
        for each in folder.iterdir()
    }


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder that everybody may enter, as those of pytest are not."""
    path = Path(tempfile.mkdtemp(prefix="lease-test-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        path.chmod(0o700)
        rmtree(path)


def as_nobody(task: Callable[[], object]) -> Any:
    """Run a task in a child that is not root, and return what it returns, by way of JSON."""

    warm()

    def step_down() -> object:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        return task()

    return in_child(step_down)


def in_child(task: Callable[[], object]) -> Any:
    """Run a task in a forked child, and return what it returns, by way of JSON."""
    theirs, ours = os.pipe()
    with warnings.catch_warnings():
        # Later Pythons warn of threads, such as those of a test runner's own; the child needs none.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.write(ours, json.dumps(task()).encode())
            code = 0
        except BaseException:  # noqa: BLE001  (told by the traceback, and by the code)
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(ours)
    with open(theirs, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return json.loads(said)
