"""The `lease` command: its subcommands, loaded when they are named, and its way of failing."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import click

from lease import __version__
from lease.cli._group import Group
from lease.cli._output import printable

# A command is the function of its name in this module of `lease.cli`, in the order of the help.
_COMMANDS = {
    "init": "queue_files",
    "enqueue": "enqueue",
    "work": "work",
    "receive": "receive",
    "stats": "queue_files",
    "jobs": "queue_files",
    "redrive": "redrive",
    "doctor": "care",
    "backup": "care",
    "outbox": "outbox",
    "demo": "demo",
}


class _Commands(Group):
    """Imports a command's module only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"lease.cli.{_COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name)
        return command


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
    epilog="Exit codes: 0 done, 1 something failed or could not be reached, 2 unusable arguments.",
)
@click.version_option(__version__, message="lease %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Deliver what was committed, from one SQLite file, with one effect a job."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; tell a failure in one line on stderr.

    Raises:
        SystemExit: whoever read the output has seen enough, for instance `head`; code 1.
    """
    try:
        with _warnings_in_one_line():
            code = cli.main(arguments, prog_name="lease", standalone_mode=False)
    except click.exceptions.Abort:
        return _fail("interrupted", 1)
    except click.UsageError as error:
        return _fail(_with_help(error), 2)
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except OSError as error:
        _discard_output()
        return _fail(f"the output cannot be written: {error.strerror}", 1)
    return code if type(code) is int else 0


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Tell what the library warns of as a failure is told, without its place in the code."""

    def tell(message: Warning | str, *_place: object, **_named: object) -> None:
        _say(str(message))

    with warnings.catch_warnings():
        warnings.showwarning = tell
        yield


def _with_help(error: click.UsageError) -> str:
    message = error.format_message().rstrip(".")
    see = " See" if message.endswith(("?", "?)")) else "; see"
    return f"{message}{see} '{error.ctx.command_path if error.ctx else 'lease'} --help'"


def _fail(message: str, code: int) -> int:
    _say(message)
    return code


def _say(message: str) -> None:
    click.echo(f"lease: {printable(' '.join(message.split()))}", err=True)


def _discard_output() -> None:
    """Keep Python from failing on the same output once more when it exits."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
