"""`lease outbox demo`: a lost delivery and a repeated one, and what became of the records."""

import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import click

from lease import checks
from lease import outbox as verbs
from lease.cli._arguments import database_path
from lease.cli._failures import Failure, blamed_on, needs_extra, shown, typed
from lease.outbox import accelerator
from lease.outbox.demo import DemoError, run_demo
from lease.outbox.embedded import embedded_valkey

_PORT = re.compile(r"[0-9]{1,5}")
_MAX_PORT = 65_535
_ADVICE = "start it, or name another with --url, or with SPEDO_HOST, SPEDO_PORT and SPEDO_PASSWORD"


@click.command()
@click.option(
    "--url",
    metavar="URL",
    help="The server: spedo://HOST:PORT, redis://HOST:PORT or valkey://HOST:PORT.",
)
@click.option(
    "--outbox-path",
    "path",
    type=database_path,
    metavar="OUTBOX",
    help="The outbox; by default a new file among the temporary ones, which is told and stays.",
)
@click.option(
    "--timeout-seconds",
    "timeout",
    metavar="S",
    default="3",
    envvar="SPEDO_TIMEOUT_SECONDS",
    show_default=True,
    show_envvar=True,
    help="Longest wait to connect, and for each answer.",
)
def demo(url: str | None, path: str | None, timeout: str) -> None:
    """Show one effect a record, whatever is lost.

    One delivery is lost and another repeated on purpose. Without --url the server is the Spedo
    at SPEDO_HOST and SPEDO_PORT, where one of these or the credentials are set, and otherwise
    an embedded Valkey that needs the demo extra. The credentials come from SPEDO_USERNAME and
    SPEDO_PASSWORD. The server is checked before anything is made, and nothing of it is touched
    but a key of this run's own.
    """
    timeout_s = _seconds(timeout)
    target = _target(url)
    run_id = secrets.token_hex(6)
    is_ours = path is None
    path = path or os.path.join(tempfile.gettempdir(), f"lease-outbox-demo-{run_id}.db")
    with needs_extra("redis", "outbox demo"):
        import redis  # noqa: F401  (only to say that it is missing)
    try:
        with _server(target) as found, blamed_on(path):
            key = f"lease:outbox-demo:{run_id}"
            with closing(accelerator.connect(found, key=key, timeout_s=timeout_s)) as queue:
                run_demo(queue, path, run_id, click.echo)
    except verbs.AcceleratorError as error:
        raise Failure(f"{error}; {_ADVICE}") from error
    except DemoError as error:
        raise Failure(f"not validated: {error}; look at {shown(path)}") from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(f"{shown(path)} cannot be made: {error.strerror}") from error
    click.echo("VALIDATED: 3 records, 3 effects, 1 duplicate ignored, although a delivery was lost")
    if is_ours:
        click.echo(f"Look for yourself, and then remove it: lease outbox stats {typed(path)}")


@contextmanager
def _server(target: accelerator.Address | None) -> Iterator[accelerator.Address]:
    """Yield the server that was named, or one of our own."""
    if target is not None:
        yield target
        return
    with ExitStack() as stack:
        with needs_extra("demo", "outbox demo"):
            url = stack.enter_context(embedded_valkey())
        yield accelerator.address(url)


def _target(url: str | None) -> accelerator.Address | None:
    """Return the server that the arguments or the environment name, if they name one."""
    named = {name: os.environ.get(f"SPEDO_{name}") for name in ("HOST", "PORT")}
    username, password = os.environ.get("SPEDO_USERNAME"), os.environ.get("SPEDO_PASSWORD")
    if url is None and not any((*named.values(), username, password)):
        return None
    if url is None:
        port = named["PORT"] or str(accelerator.SPEDO_PORT)
        if not _PORT.fullmatch(port) or not 1 <= int(port) <= _MAX_PORT:
            raise click.UsageError(f"SPEDO_PORT must be a port from 1 to {_MAX_PORT}, not {port!r}")
        host = named["HOST"] or "127.0.0.1"
        return accelerator.Address("spedo", host, int(port), "", 0, username, password)
    try:
        found = accelerator.address(url, username=username, password=password)
    except ValueError as error:
        raise click.UsageError(f"--url: {error}") from error
    if password is None and found.password is not None:
        raise click.UsageError("--url: the password is for SPEDO_PASSWORD, where nobody reads it")
    return found


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
        return checks.seconds("it", seconds)
    except ValueError as error:
        raise click.UsageError(
            f"--timeout-seconds and SPEDO_TIMEOUT_SECONDS must be a number of seconds above 0, "
            f"not {value!r}"
        ) from error
