"""Child processes: workers that start together, and what they say when they have ended."""

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import monotonic, sleep
from typing import Any

from lease import jobs
from lease.dispatcher import Dispatcher
from tests.bench.floor import plain_open
from tests.bench.rounds import timed


def work(path: str, owner: str, seconds: float, send_s: float) -> dict[str, Any]:
    """Deliver from a queue for a while; say when each job was done, and how often a lock hurt.

    A send takes `send_s`. The instants are those of the one clock that all processes of a machine
    share.
    """
    done: list[float] = []
    troubles: list[object] = []
    dispatcher = Dispatcher(
        path,
        lambda _: sleep(send_s) is None,
        owner=owner,
        on_result=lambda _: done.append(monotonic()),
        on_trouble=troubles.append,
    )
    _report("ready")
    sys.stdin.readline()
    threading.Timer(seconds, dispatcher.stop).start()
    dispatcher.run()
    return {"done": done, "locked": len(troubles)}


def deliver_and_weigh(path: str, count: int) -> dict[str, float]:
    """Deliver some jobs of a queue; say how much memory the process had at its peak."""
    delivered = 0

    def note(_: object) -> None:
        nonlocal delivered
        delivered += 1
        if delivered >= count:
            dispatcher.stop()

    dispatcher = Dispatcher(path, _confirm, owner="weighed", on_result=note)
    dispatcher.run("drained")
    return {"delivered": delivered, "peak": getrusage(RUSAGE_SELF).ru_maxrss / 1024}


def open_first(path: str) -> dict[str, float]:
    """Open a queue as the first thing that a process does after its imports."""
    return {"ours": timed(lambda: jobs.open_queue(path).close())}


def open_plain(path: str) -> dict[str, float]:
    """Open a file plainly, likewise."""
    return {"plain": timed(lambda: plain_open(Path(path)))}


def _confirm(_: object) -> bool:
    return True


def _report(what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _FUNCTIONS: dict[str, Callable[..., dict[str, Any]]] = {
        each.__name__: each for each in (work, deliver_and_weigh, open_first, open_plain)
    }
    _report(_FUNCTIONS[sys.argv[1]](*json.loads(sys.argv[2])))
