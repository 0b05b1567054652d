"""What the child processes do; run as `python -m tests.processes.children FUNCTION ARGUMENTS`."""

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import lease
from lease.jobs import _open

#: The present of every child.
NOW_MS = 1_000_000


def say(word: object) -> None:
    """Tell the parent something."""
    sys.stdout.write(json.dumps(word) + "\n")
    sys.stdout.flush()


def wait_at_gate() -> None:
    """Say that all is ready, and wait for the parent to open the gate."""
    say("ready")
    os.read(int(os.environ["GATE"]), 1)


def die(how: str) -> None:
    """End at once: no cleanup, no rollback, no close."""
    if how == "exit":
        os._exit(7)
    os.kill(os.getpid(), signal.SIGKILL)


def dying(point: str, how: str) -> Callable[[str], None]:
    """Return a hook that dies at one point."""

    def fault(reached: str) -> None:
        if reached == point:
            die(how)

    return fault


def claim_and_die(path: str, point: str, how: str) -> None:
    """Die within a claim."""
    lease.claim(lease.open_queue(path), "w", NOW_MS, fault=dying(point, how))


def finish_and_die(path: str, point: str, how: str) -> None:
    """Die within a finish."""
    con = lease.open_queue(path)
    lease.finish(con, lease.claim(con, "w", NOW_MS), "ok", NOW_MS, fault=dying(point, how))


def redrive_and_die(path: str, point: str, how: str) -> None:
    """Die within a redrive."""
    con = lease.open_queue(path)
    lease.redrive(con, "a", NOW_MS, 1000, "note", fault=dying(point, how))


def send_and_die(path: str, how: str) -> None:
    """Die while the event is being sent."""
    lease.run_file(path, "w", lambda: NOW_MS, lambda _event: die(how), 1)


def write_and_die(path: str) -> None:
    """Die with changes of an open transaction already written into the file."""
    con = lease.open_queue(path)
    con.execute("PRAGMA cache_size = 1")
    con.execute("BEGIN IMMEDIATE")
    con.execute("UPDATE jobs SET status = 'dead', reason = 'never', token = token + 1000")
    die("kill")


def claim_rounds(number: int, path: str, rounds: int) -> None:
    """Claim once a round, all claimants at the same instant."""
    con = lease.open_queue(path)
    for _ in range(rounds):
        wait_at_gate()
        say(patiently(lease.claim, con, f"w{number}", NOW_MS, 60_000))
        # Not before the others: whoever is quick would go through the gate in their place.
        sys.stdin.readline()
    con.close()


def drain(number: int, path: str) -> None:
    """Claim and finish until nothing is left; tell every job that was handed out."""
    con = lease.open_queue(path)
    handed = []
    wait_at_gate()
    while ticket := patiently(lease.claim, con, f"w{number}", NOW_MS, 60_000):
        handed.append([ticket["id"], ticket["token"]])
        assert patiently(lease.finish, con, ticket, "ok", NOW_MS) == "done"
    say(handed)
    con.close()


def patiently(verb: Callable[..., Any], *arguments: object) -> Any:
    """Call a verb until the file is not locked, however slow the disk is."""
    while True:
        try:
            return verb(*arguments)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY":
                raise


def open_new(_number: int, path: str) -> None:
    """Open a path at which no file is yet."""
    wait_at_gate()
    try:
        lease.open_queue(path).close()
    except sqlite3.OperationalError as error:
        say(error.sqlite_errorname)
    else:
        say("opened")


def migrate_and_die(folder: str) -> None:
    """For each statement of a migration run, let a process of its own die right before it.

    Each of them is forked from this one, which has imported everything and opened nothing; its
    file is named after the number of statements that ran. The last one runs to its end.
    """
    import_module("lease.db.apply")

    connect = _open.connect
    for allowed in range(1_000):
        child = os.fork()
        if child == 0:
            left = allowed

            def count(_sql: str) -> None:
                nonlocal left
                if left == 0:
                    die("kill")
                left -= 1

            def connect_counting(*arguments, **options) -> sqlite3.Connection:
                con = connect(*arguments, **options)
                con.set_trace_callback(count)
                return con

            _open.connect = connect_counting
            lease.open_queue(os.path.join(folder, str(allowed)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        say(code)
        if code != -signal.SIGKILL:
            return


if __name__ == "__main__":
    globals()[sys.argv[1]](*json.loads(sys.argv[2]))
