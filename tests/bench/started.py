"""Start this package's child processes, and whole interpreters."""

import json
import subprocess
import sys
from contextlib import ExitStack
from typing import Any

from tests.support.processes import ROOT, environment


def child(function: str, *arguments: object) -> Any:
    """Run one function of `children` in its own process; return what it says."""
    with _popen(function, arguments) as process:
        return _last(process)


def together(function: str, each: list[tuple[object, ...]]) -> list[Any]:
    """Run one function in several processes, let go when all are ready."""
    with ExitStack() as stack:
        processes = [stack.enter_context(_popen(function, arguments)) for arguments in each]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == '"ready"\n'
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return [_last(process) for process in processes]


def interpreter(code: str) -> None:
    """Run a piece of Python as a whole process."""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment(), check=True)


def _popen(function: str, arguments: tuple[object, ...]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.bench.children", function, json.dumps(arguments)],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _last(process: subprocess.Popen[str]) -> Any:
    answer, _ = process.communicate()
    assert process.returncode == 0, f"a child ended with {process.returncode}"
    return json.loads(answer.splitlines()[-1])
