"""A delivery over HTTP in a process of its own, which dies where it is told."""

import os
import signal
import sys
from contextlib import ExitStack, closing

from lease import jobs
from lease.delivery import HttpSender
from lease.outbox import Record, deliver, document, open_outbox


def main() -> None:
    """Deliver until nothing is pending, or die right after the first answer."""
    path, queue_path, url, moment = sys.argv[1:]
    with ExitStack() as stack:
        con = stack.enter_context(closing(open_outbox(path)))
        queue = None
        if queue_path:
            queue = stack.enter_context(closing(jobs.open_queue(queue_path)))
        sender = stack.enter_context(HttpSender(f"{url}events"))

        def send(record: Record) -> object:
            answer = sender.post(record["id"], document(record))
            if moment == "after-send":
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        def settled(_event: object) -> None:
            if moment == "before-mark":
                os.kill(os.getpid(), signal.SIGKILL)

        deliver(
            con,
            send,
            owner=f"d-{os.getpid()}",
            queue=queue,
            until="drained",
            lease_ms=300,
            base_ms=1,
            poll_ms=50,
            on_result=settled,
        )


if __name__ == "__main__":
    main()
