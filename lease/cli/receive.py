"""`lease receive`: a receiver that makes one effect of however many deliveries."""

import click

from lease.cli._arguments import JSON, database_path, whole
from lease.cli._failures import Failure, blamed_on, needs_extra, shown
from lease.cli._output import print_json


@click.command()
@click.option(
    "--db",
    "path",
    type=database_path,
    metavar="INBOX",
    required=True,
    help="The inbox; created if missing.",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on.",
)
@click.option(
    "--port",
    type=whole(0, 65535),
    metavar="PORT",
    default=0,
    help="Port to listen on; by default a free one, which is told.",
)
@JSON
def receive(path: str, host: str, port: int, as_json: bool) -> None:
    """Accept events over HTTP into an inbox file until SIGINT or SIGTERM.

    The same id and quantity is one effect, however often it is sent; the same id with another
    quantity is answered 409. The path /events takes what 'lease outbox deliver' sends, with type
    and payload in place of the quantity. Anybody who can reach the address can send.

    The keys of --json: url, db.
    """
    with needs_extra("http", "receive"):
        from lease.inbox.http import serve

    def tell(url: str) -> None:
        if as_json:
            print_json({"url": url, "db": shown(path)})
        else:
            click.echo(f"Receiving at {url} into {shown(path)}")

    with blamed_on(path):
        try:
            serve(path, host=host, port=port, on_ready=tell)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Failure(str(error.strerror)) from error
