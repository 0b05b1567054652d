"""Start child processes, hear what they say, and leave none of them behind."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self

from lease.demo import _children

# The child finds the package where this process did, and nothing in its working directory.
_CODE = """
import importlib, json, sys
sys.path[:], module, role, options = json.loads(sys.argv[1])
importlib.import_module(module).main(role, options)
"""

_GRACE_S = 3


class DemoError(Exception):
    """The demo could not be played to its end; the message says why."""


class Heard:
    """One thing that a child said; `word` names it, an item is one of its details."""

    def __init__(self, name: str, details: dict[str, Any]) -> None:
        self.name = name
        self.word: str = details.pop("word")
        self._details = details

    def __getitem__(self, key: str) -> Any:
        return self._details[key]


class Children:
    """The demo's processes, by name; a `with` block ends when all of them have ended.

    Args:
        folder: where the children's complaints go, `NAME.log`.
        seconds: how long all of it may take.
    """

    def __init__(self, folder: str, seconds: float) -> None:
        self._folder = folder
        self._end_s = time.monotonic() + seconds
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._heard: SimpleQueue[tuple[str, bytes]] = SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for name in list(self._running):
            self.kill(name)

    def start(self, name: str, role: str, **options: object) -> None:
        """Start a child in its role."""
        told = [sys.path, _children.__name__, role, options]
        with open(self._log(name), "wb") as log:
            # Its own session: a Ctrl-C reaches this process alone, which then ends the others.
            child = subprocess.Popen(  # noqa: S603  (this very Python, with arguments of our own)
                [sys.executable, "-P", "-c", _CODE, json.dumps(told)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._running[name] = child
        threading.Thread(target=self._listen, args=(name, child), daemon=True).start()

    def hear(self) -> Heard:
        """Return the next thing that any child says.

        Raises:
            DemoError: a child has ended that should not have, or the time is over.
        """
        while True:
            try:
                name, line = self._heard.get(timeout=max(0, self._end_s - time.monotonic()))
            except Empty as error:
                raise DemoError("it took too long; is this machine very busy?") from error
            if line:
                return Heard(name, json.loads(line))
            if name in self._running:
                raise DemoError(f"the process {name!r} ended unexpectedly: {self._complaint(name)}")

    def go(self, name: str) -> None:
        """Let a child begin; one that has begun goes on."""
        stdin = self._running[name].stdin
        assert stdin is not None  # noqa: S101  (it was asked for)
        stdin.write(b"\n")
        stdin.flush()

    def kill(self, name: str) -> int:
        """SIGKILL a child and return the code that it ended with."""
        child = self._running.pop(name)
        child.kill()
        return _bury(child)

    def end(self, name: str, by: int = 0) -> None:
        """Wait for a child that ends by itself, or by a signal; kill it if it does not."""
        child = self._running.pop(name)
        child.send_signal(by)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE_S)
        child.kill()
        _bury(child)

    def _listen(self, name: str, child: "subprocess.Popen[bytes]") -> None:
        assert child.stdout is not None  # noqa: S101  (it was asked for)
        with child.stdout as lines:
            for line in lines:
                self._heard.put((name, line))
        self._heard.put((name, b""))

    def _complaint(self, name: str) -> str:
        with open(self._log(name), errors="replace") as log:
            lines = log.read().split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "it gave no reason")

    def _log(self, name: str) -> str:
        return os.path.join(self._folder, f"{name}.log")


def _bury(child: "subprocess.Popen[bytes]") -> int:
    code = child.wait()
    assert child.stdin is not None  # noqa: S101  (it was asked for)
    child.stdin.close()
    return code
