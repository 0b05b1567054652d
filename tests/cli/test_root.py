"""The command as a whole: help, version, exit codes, and failing in one line."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import pytest

import lease as package
from lease.cli import _root, main
from tests.support.cli import Ran, ended, lease, started
from tests.support.processes import ROOT, environment, run_code

COMMANDS = ["init", "enqueue", "work", "receive", "stats", "jobs", "redrive"]
COMMANDS += ["doctor", "backup", "outbox", "demo"]


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_lease_prints_its_help(arguments: tuple[str, ...]) -> None:
    """The help lists the commands in the order of their use, each with a line."""
    code, out, err = lease(*arguments)

    assert (code, err) == (0, "")
    listed = out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed] == COMMANDS
    assert all(len(line.split()) > 3 for line in listed)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_a_help(command: str) -> None:
    """Options that take a value show which kind, and --json its keys."""
    code, out, err = lease(command, "--help")

    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: lease {command} ")
    assert "--json" not in out or "keys of --json" in out or "With --json" in out


def test_lease_prints_its_version() -> None:
    """The version is the package's."""
    assert lease("--version") == (0, f"lease {package.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("nonsense",), "No such command 'nonsense'; see 'lease --help'"),
        (("stat",), "No such command 'stat'. Did you mean 'stats'? See 'lease --help'"),
        (
            ("outbox", "pendin"),
            "No such command 'pendin'. Did you mean 'pending'? See 'lease outbox --help'",
        ),
        (("outbox", "frob"), "No such command 'frob'; see 'lease outbox --help'"),
        (("jobs", "q.db", "--statu", "done"), "No such option '--statu'. Did you mean '--status'"),
        (("stats",), "Missing argument 'QUEUE'; see 'lease stats --help'"),
        (("stats", ""), "Invalid value for 'QUEUE': '' names no file; see 'lease stats --help'"),
        (("jobs", "q.db", "--limit", "0"), "Invalid value for '--limit': '0' is no number"),
        (("stats", "q.db", "extra"), "Got unexpected extra argument (extra); see"),
        (("stats", "q.db", "--frob"), "No such option"),
    ],
)
def test_unusable_arguments_are_one_line(arguments: tuple[str, ...], line: str) -> None:
    """The exit code is 2, and the line says where the help is."""
    code, out, err = lease(*arguments)

    assert (code, out) == (2, "")
    assert err.startswith(f"lease: {line}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "ran"),
    [
        (KeyboardInterrupt(), (1, "", "\nlease: interrupted\n")),
        (click.UsageError("two\nlines."), (2, "", "lease: two lines; see 'lease --help'\n")),
        (click.UsageError("a or b?"), (2, "", "lease: a or b? See 'lease --help'\n")),
        (click.UsageError("(a or b?)"), (2, "", "lease: (a or b?) See 'lease --help'\n")),
    ],
)
def test_lease_tells_a_failure_in_one_line(error: BaseException, ran: Ran) -> None:
    """Also of what a command does not raise by itself."""
    with patch.object(_root.cli, "invoke", side_effect=error):
        assert lease() == ran


def test_lease_lets_a_bug_out() -> None:
    """What nobody foresaw is a traceback, for whoever mends it."""
    with (
        patch.object(_root.cli, "invoke", side_effect=ZeroDivisionError),
        pytest.raises(ZeroDivisionError),
    ):
        lease()


def test_a_command_that_only_reads_needs_no_http() -> None:
    """A command loads what it needs and nothing more."""
    code = (
        "import sys; from lease.cli._root import run; run(['stats', 'none.db']);"
        "print(sorted({'httpcore', 'starlette', 'uvicorn', 'yoyo'} & set(sys.modules)))"
    )

    assert run_code(code).stdout == "[]\n"


def test_main_exits_with_the_code() -> None:
    """The console script takes its arguments from the process."""
    with patch.object(sys, "argv", ["lease", "nonsense"]), pytest.raises(SystemExit) as caught:
        main()

    assert caught.value.code == 2


def test_importing_the_module_of_the_command_runs_nothing() -> None:
    """Only `python -m lease` does."""
    assert importlib.import_module("lease.__main__").main is main


def test_main_without_click_tells_what_to_install() -> None:
    """The bare library has no command line, and says so."""
    done = run_code("import sys; sys.modules['click'] = None; from lease.cli import main; main()")

    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "lease: the command line needs the cli extra: pip install 'lease-queue[cli]'\n",
    )


def test_main_lets_out_that_another_module_is_missing() -> None:
    """A broken installation is not taken for a missing extra."""
    with patch.dict(sys.modules, {"lease.cli._root": None}), pytest.raises(ModuleNotFoundError):
        main()


def test_main_works_with_closed_streams(queue_path: Path) -> None:
    """Started without stdin, stdout and stderr, a command still does its work."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -m lease init "$1" <&- >&- 2>&-', sys.executable, queue_path],
        cwd=ROOT,
        env=environment(),
        timeout=60,
        check=False,
    )

    assert done.returncode == 0
    assert lease("stats", queue_path, "--json").json["jobs"] == 0


def test_main_takes_a_path_that_is_no_utf_8(tmp_path: Path) -> None:
    """A path is bytes; what cannot be shown of it is replaced."""
    path = os.fsencode(tmp_path) + b"/\xff.db"
    with started("init", path) as process:
        code, out, err = ended(process)

    assert (code, err) == (0, "")
    assert out == f"{tmp_path}/\ufffd.db is a new queue\n"
    assert os.path.exists(path)


def test_main_prints_any_path_to_any_terminal(tmp_path: Path) -> None:
    """A terminal without the letter shows its number."""
    done = run_code(
        "import sys; from lease.cli import main; main()",
        "init",
        tmp_path / "\u20ac.db",
        PYTHONIOENCODING="latin-1",
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path}/\\u20ac.db is a new queue\n"


def printing(stdout: Any) -> Ran:
    with started("--help", stdout=stdout) as process:
        return ended(process)


def test_a_closed_pipe_is_quiet() -> None:
    """`lease jobs q.db | head` ends when head has seen enough."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        code, _, err = printing(writer)
    finally:
        os.close(writer)

    assert (code, err) == (1, "")


def test_a_full_device_is_told() -> None:
    """Output that was lost is a failure."""
    with open("/dev/full", "w") as full:
        code, _, err = printing(full)

    assert (code, err) == (1, "lease: the output cannot be written: No space left on device\n")
