"""`lease outbox init`: make an outbox, in a file of its own or in an application's database."""

import os
from typing import get_args

import click

from lease import outbox as verbs
from lease.cli._failures import blamed_on, shown
from lease.cli.outbox_files import OUTBOX
from lease.db.durability import JournalMode


@click.command()
@OUTBOX
@click.option(
    "--journal-mode",
    type=click.Choice(get_args(JournalMode)),
    help="How the file is made safe: delete, with four syncs a commit, or wal, with one; by "
    "default wal for a new file, and as it is for one that is there.",
)
def init(path: str, journal_mode: JournalMode | None) -> None:
    """Make an outbox, in a new file or a database.

    The file OUTBOX is created if it is missing. An older outbox is brought up to date. All else
    in the file stays as it is.
    """
    existed = os.path.lexists(path)
    with blamed_on(path):
        mode = journal_mode or (None if existed else "wal")
        verbs.open_outbox(path, journal_mode=mode).close()
    click.echo(f"{shown(path)} {'has an outbox' if existed else 'is a new outbox'}")
