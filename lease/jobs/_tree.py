"""Check the tree that claims search by, and build it anew."""

import sqlite3

from lease.db.keepers import faults_of
from lease.db.statements import statement
from lease.db.transaction import write_transaction
from lease.errors import UnusableFile

TREE_CHECK = statement("tree_check")
TREE_CLEAR_LEAVES = statement("tree_clear_leaves")
TREE_CLEAR_BRANCHES = statement("tree_clear_branches")
TREE_FILL = statement("tree_fill")


def tree_check(con: sqlite3.Connection) -> list[str]:
    """Report every place where the tree would mislead a claim.

    A bound that is too high hides a job from every claim; one that is too low only costs time
    and is no fault in a leaf. Only SQL that writes to the tree itself, or that drops one of its
    triggers, can bring a fault about.

    Args:
        con: a connection to a queue; only read from.

    Returns:
        One line a fault, in order; empty where the tree is sound.

    Hooks: none.
    """
    faults = faults_of(con, "queue_0003_tree")
    if faults:
        return faults
    return [
        f"{part} {number} has ready_at={ready_at}, bury_at={bury_at} above "
        f"ready_at={lowest_ready_at}, bury_at={lowest_bury_at}; rebuild the tree"
        for part, number, ready_at, bury_at, lowest_ready_at, lowest_bury_at in TREE_CHECK.many(con)
    ]


def tree_rebuild(con: sqlite3.Connection) -> None:
    """Build the tree anew from the jobs, in one transaction.

    Takes about two seconds for a million open jobs, and holds the write lock meanwhile.

    Args:
        con: a connection with no transaction open.

    Raises:
        UnusableFile: the tree would not be sound either, since a trigger is missing; nothing
            was changed.

    Hooks: none.
    """
    with write_transaction(con):
        for fault in faults_of(con, "queue_0003_tree"):
            raise UnusableFile(fault)
        TREE_CLEAR_LEAVES.count(con)
        TREE_CLEAR_BRANCHES.count(con)
        TREE_FILL.count(con)
