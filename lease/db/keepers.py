"""Compare the triggers and views of a file, which keep what its verbs rely on, with those shipped.

A migration that is recorded in a file says only that they were made; they may be gone since.
"""

import sqlite3
from contextlib import closing
from functools import cache

from lease.db.migrations import names_of
from lease.db.resources import folder
from lease.db.statements import statement

SCHEMA_KEEPERS = statement("schema_keepers")

#: What SQLite keeps of a trigger or a view, by its name: its kind and its text.
Keepers = dict[str, tuple[str, str]]


def faults_of(con: sqlite3.Connection, migration: str) -> list[str]:
    """Report every trigger and view of a migration that is not as the migration made it.

    Args:
        con: a connection to a file; only read from.
        migration: the name of one of the queue's migrations.

    Returns:
        One line a fault, by name; empty where all are there to the letter.
    """
    shipped, found = _shipped()[migration], _keepers(con)
    if found.keys().isdisjoint(shipped):
        return [f"the file lacks the migration {migration}; open_queue applies it"]
    return [
        f"the {keeper[0]} {name} is {'changed' if name in found else 'missing'}; "
        f"roll back and apply the migration {migration}"
        for name, keeper in sorted(shipped.items())
        if found.get(name) != keeper
    ]


def _keepers(con: sqlite3.Connection) -> Keepers:
    return {name: (kind, text) for name, kind, text in SCHEMA_KEEPERS.many(con)}


@cache
def _shipped() -> dict[str, Keepers]:
    """Return what each of the queue's migrations makes, by making it in memory."""
    texts = {
        file.name: file.read_bytes().decode() for file in folder("migrations", "sqlite").iterdir()
    }
    made: dict[str, Keepers] = {}
    with closing(sqlite3.connect(":memory:")) as con:
        before: Keepers = {}
        for migration in names_of("queue"):
            con.executescript(texts[f"{migration}.sql"])
            after = _keepers(con)
            made[migration] = {name: after[name] for name in after.keys() - before.keys()}
            before = after
    return made
