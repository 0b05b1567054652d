"""`lease outbox`: the commands for what applications record."""

import click

from lease.cli._group import Group
from lease.cli.outbox_deliver import deliver
from lease.cli.outbox_demo import demo
from lease.cli.outbox_files import pending, prune, redrive, stats
from lease.cli.outbox_init import init


@click.group(cls=Group)
def outbox() -> None:
    """Deliver what an application has recorded.

    OUTBOX is the application's own database, or a file that 'lease outbox init' makes; its
    settings are left alone.
    """


for _command in (init, deliver, stats, pending, redrive, prune, demo):
    outbox.add_command(_command)
