"""Check the tally from which stats are told, and make it anew."""

import sqlite3

from lease.db.keepers import faults_of
from lease.db.statements import statement
from lease.db.transaction import write_transaction
from lease.errors import UnusableFile

TALLY_CHECK = statement("tally_check")
TALLY_CLEAR_BUSY = statement("tally_clear_busy")
TALLY_CLEAR_TOTALS = statement("tally_clear_totals")
TALLY_FILL = statement("tally_fill")


def tally_check(con: sqlite3.Connection) -> list[str]:
    """Report every total by which `stats` would miscount.

    Only SQL that writes to the tally itself or drops one of its triggers can bring a fault about,
    or what others add to the table: a trigger that changes jobs as one comes in, a unique index
    whose rows OR REPLACE deletes.

    Args:
        con: a connection to a queue; only read from.

    Returns:
        One line a fault, in order; empty where the tally is exact.

    Hooks: none.
    """
    faults = faults_of(con, "queue_0004_tally")
    if faults:
        return faults
    return [
        f"the total of jobs that are {f'{status} ({reason})' if reason else status} is off by "
        f"{jobs}, that of their claims by {claims}; rebuild the tally"
        for status, reason, jobs, claims in TALLY_CHECK.many(con)
    ]


def tally_rebuild(con: sqlite3.Connection) -> None:
    """Count every job anew, in one transaction.

    Takes about a second for a million jobs, and holds the write lock meanwhile.

    Args:
        con: a connection with no transaction open.

    Raises:
        UnusableFile: the tally would not stay exact, since a trigger is missing; nothing was
            changed.

    Hooks: none.
    """
    with write_transaction(con):
        for fault in faults_of(con, "queue_0004_tally"):
            raise UnusableFile(fault)
        TALLY_CLEAR_BUSY.count(con)
        TALLY_CLEAR_TOTALS.count(con)
        TALLY_FILL.count(con)
