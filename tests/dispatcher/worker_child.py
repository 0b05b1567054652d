"""A worker in a process of its own, which says in JSON lines what it does.

Run as `python -m tests.dispatcher.worker_child FUNCTION ARGUMENTS`.
"""

import json
import sys
import threading
from contextlib import closing
from typing import Any

from lease import Event
from lease.clock import wall_ms
from lease.dispatcher import Dispatcher
from lease.inbox import accept, open_inbox

_pen = threading.Lock()


def say(word: object) -> None:
    """Tell the parent something, from any thread."""
    with _pen:
        sys.stdout.write(json.dumps(word) + "\n")
        sys.stdout.flush()


def hear() -> None:
    """Wait for the parent's word."""
    sys.stdin.readline()


def drain(path: str, owner: str, concurrency: int) -> None:
    """Deliver at a word until nothing is open; tell which jobs, and what was in the way."""
    sent: list[str] = []
    troubles: list[str] = []

    def send(event: Event) -> bool:
        sent.append(event["id"])
        return True

    dispatcher = Dispatcher(
        path,
        send,
        owner=owner,
        concurrency=concurrency,
        on_trouble=lambda error: troubles.append(str(error)),
    )
    say("ready")
    hear()
    tally = dispatcher.run("drained")
    say({"sent": sent, "tally": tally._asdict(), "troubles": troubles})


def apply(path: str, inbox: str, owner: str, concurrency: int, lease_ms: int, hold: bool) -> None:
    """Deliver into an inbox until nothing is open; tell each effect, and hold there if asked."""

    def send(event: Event) -> bool:
        with closing(open_inbox(inbox)) as con, _pen:
            accept(con, event, wall_ms())
        say(event["id"])
        if hold:
            released.wait()
        return True

    def release() -> None:
        hear()
        released.set()

    released = threading.Event()
    threading.Thread(target=release, daemon=True).start()
    dispatcher = Dispatcher(
        path, send, owner=owner, concurrency=concurrency, lease_ms=lease_ms, poll_ms=50
    )
    say(dispatcher.run("drained")._asdict())


if __name__ == "__main__":
    arguments: list[Any] = json.loads(sys.argv[2])
    {"drain": drain, "apply": apply}[sys.argv[1]](*arguments)
