"""The `lease` command: within this process, and as one of its own."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from lease.cli._root import run
from tests.support.processes import DEADLINE_S, ROOT, environment

_STREAMS: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
}


class Ran(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on stdout."""
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        """The JSON value of each line on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]


def lease(*arguments: object, stdin: bytes = b"") -> Ran:
    """Run a command in this process."""
    into = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with patch("sys.stdin", into), patch("sys.stdout", out), patch("sys.stderr", err):
        code = run([os.fspath(_path_or_text(each)) for each in arguments])
    return Ran(code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


@contextmanager
def started(*arguments: object, **options: Any) -> Iterator["subprocess.Popen[str]"]:
    """Start a command as a process of its own; kill it if it outlives the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lease", *map(os.fspath, map(_path_or_text, arguments))],
        cwd=ROOT,
        env=environment(),
        text=True,
        **(_STREAMS | options),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def _path_or_text(argument: object) -> Any:
    return argument if isinstance(argument, os.PathLike | bytes) else str(argument)


def ended(process: "subprocess.Popen[str]", by: int | None = None) -> Ran:
    """Wait for a command to end, by a signal if one is given."""
    if by is not None:
        process.send_signal(by)
    out, err = process.communicate(timeout=DEADLINE_S)
    return Ran(process.returncode, out, err)


@contextmanager
def receiving(inbox: object) -> Iterator[str]:
    """Run `lease receive` for a block and give its URL; it must end well."""
    with started("receive", "--db", inbox, "--json") as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        yield url
        assert ended(process, signal.SIGTERM) == (0, "", "")


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition to come true."""
    end_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end_s, "it never came true"
        time.sleep(0.01)
