"""`lease doctor` and `lease backup`: look a queue over, and keep a copy of it."""

import os
import sqlite3

import click

from lease import jobs as verbs
from lease.cli._arguments import JSON, QUEUE, database_path
from lease.cli._failures import Failure, blamed_on, shown
from lease.cli._output import print_json, printable
from lease.cli.queue_files import opened
from lease.clock import wall_ms
from lease.db.locked import is_locked


@click.command()
@QUEUE
@JSON
def doctor(path: str, as_json: bool) -> None:
    """Look QUEUE over: damage, its journal, rights and disk, the clock, what nobody works on.

    Each line begins with well or look, and the exit code is 1 if any says look. The whole file
    is read, and without a write-ahead log workers wait meanwhile: do it at a quiet time.

    With --json a line is a finding with the keys subject, is_well, detail.
    """
    with opened(path) as con:
        findings = verbs.doctor(con, path, wall_ms())
    width = max(len(each.subject) for each in findings)
    for each in findings:
        if as_json:
            print_json(each._asdict())
        else:
            mark = "well" if each.is_well else "look"
            click.echo(f"{mark}  {each.subject:<{width}}  {printable(each.detail)}")
    if not all(each.is_well for each in findings):
        click.get_current_context().exit(1)


@click.command()
@QUEUE
@click.argument("destination", type=database_path, metavar="DEST")
@JSON
def backup(path: str, destination: str, as_json: bool) -> None:
    """Copy QUEUE, while workers go on, into the new file DEST and prove the copy sound.

    The copy is one file, private to its user. To go back to it stop all that use QUEUE, remove
    QUEUE-journal, QUEUE-wal and QUEUE-shm, and move the copy into the place of QUEUE. Jobs that
    were delivered since are then sent again; the receiver must recognise their ids.

    The keys of --json: path (DEST), bytes, and of the copy what stats --json prints.
    """
    with opened(path) as con:
        counts = _copied(con, path, destination)
    size = os.stat(destination).st_size
    if as_json:
        print_json({"path": shown(destination), "bytes": size, **counts})
        return
    states = ", ".join(
        f"{number} {state}"
        for state, number in (
            ("pending", counts["pending"]),
            ("leased", counts["leased"]),
            ("done", counts["done"]),
            ("dead", counts["dead"]),
        )
    )
    click.echo(
        f"{shown(destination)} holds {counts['jobs']} jobs ({states}) and "
        f"{counts['redrives']} redrives in {size} bytes"
    )


def _copied(con: sqlite3.Connection, path: str, destination: str) -> verbs.Stats:
    """Make the copy, and blame the file whose fault it is."""
    try:
        return verbs.backup(con, destination)
    except FileExistsError as error:
        name = shown(destination)
        raise Failure(f"{name}, or a journal beside it, exists; name a new file") from error
    except OSError as error:
        raise Failure(f"{shown(destination)} cannot be made: {error.strerror}") from error
    except sqlite3.Error as error:
        with blamed_on(path if is_locked(error) else destination):
            raise
