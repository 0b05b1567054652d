"""An application, its dispatcher and its worker in one process, which dies where it is told."""

import os
import signal
import sqlite3
import sys
from contextlib import closing

from lease.outbox import Record, apply, connect, open_outbox, pending, receive, record, redispatch


def make_effect(con: sqlite3.Connection, each: Record) -> None:
    """Write the one row that stands for a record's effect."""
    con.execute("INSERT INTO effects VALUES (:id, :event_type, :payload_json)", each)


def main() -> None:
    """Record three orders, redispatch, and work until nothing is pending."""
    path, url, key, boundary = sys.argv[1:]

    def fault(reached: str) -> None:
        if reached == boundary:
            os.kill(os.getpid(), signal.SIGKILL)

    def effect(con: sqlite3.Connection, each: Record) -> None:
        make_effect(con, each)
        fault("effect")

    with closing(open_outbox(path)) as con, closing(connect(url, key=key)) as queue:
        for name in ("r-1", "r-2", "r-3"):
            con.execute("BEGIN IMMEDIATE")
            if not con.execute("SELECT 1 FROM orders WHERE id = ?", (name,)).fetchone():
                con.execute("INSERT INTO orders VALUES (?)", (name,))
            record(con, "made", {"n": name}, id=name, fault=fault)
            con.execute("COMMIT")
        while pending(con):
            redispatch(con, queue, fault=fault)
            while deliveries := receive(queue, 2):
                fault("after-pop")
                for each in deliveries:
                    apply(con, each, effect, fault=fault)
