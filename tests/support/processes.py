"""Real child processes: started, released together, and looked at when they have ended."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: The folder that holds `tests`: the checkout, or wherever the tests were copied to.
ROOT = Path(__file__).parents[2]

#: Far beyond what any child needs; a child that hangs fails its test and not the run.
DEADLINE_S = 60


def environment(**changes: str) -> dict[str, str]:
    """Return this process's environment, with the tests importable, and the changes.

    The SQLite of this machine may have the fault that an outbox is warned of, on stderr.
    """
    ours = {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore:SQLite"}
    return {**os.environ, **ours, **changes}


def run_code(
    code: str, *arguments: object, flags: tuple[str, ...] = (), **changes: str
) -> subprocess.CompletedProcess[str]:
    """Run a piece of Python in a fresh interpreter to its end."""
    return subprocess.run(
        [sys.executable, *flags, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def output(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a child printed, which must have ended well and without a complaint."""
    assert (done.returncode, done.stderr) == (0, ""), done.stderr

    return done.stdout.strip()


class Child:
    """One function of a module of children in its own process, spoken to in JSON lines."""

    def __init__(
        self,
        function: str,
        *arguments: object,
        gate: int | None = None,
        module: str = "tests.processes.children",
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, function, json.dumps(arguments)],
            cwd=ROOT,
            env=environment(GATE="" if gate is None else str(gate)),
            pass_fds=() if gate is None else (gate,),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> Any:
        """Wait for the child's next line and return what it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the child ended with {self.process.wait(DEADLINE_S)} and said nothing"

        return json.loads(line)

    def tell(self, word: object) -> None:
        """Send the child a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(word) + "\n")
        self.process.stdin.flush()

    def ended(self) -> int:
        """Wait for the child's end; return its exit code, negative for a signal."""
        code = self.process.wait(DEADLINE_S)
        self.close()
        return code

    def close(self) -> None:
        """Kill the child if it still runs, and close both pipes."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(DEADLINE_S)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@contextmanager
def children(function: str, count: int, *arguments: object) -> Iterator[tuple[list[Child], "Gate"]]:
    """Start that many children on one gate; each also gets its number as the first argument."""
    gate = Gate()
    started: list[Child] = []
    try:
        started.extend(
            Child(function, number, *arguments, gate=gate.outside) for number in range(count)
        )
        yield started, gate
    finally:
        for child in started:
            child.close()
        gate.close()


class Gate:
    """A pipe that children wait at; one write wakes all of them."""

    def __init__(self) -> None:
        self.outside, self._inside = os.pipe()

    def open(self, count: int) -> None:
        """Let that many through at the same instant."""
        os.write(self._inside, b"." * count)

    def close(self) -> None:
        """Close both ends."""
        os.close(self.outside)
        os.close(self._inside)
