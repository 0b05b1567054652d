"""A large backlog for any peer: its own first row, copied by SQL as often as it takes."""

import sqlite3
from contextlib import closing
from pathlib import Path


def multiply(path: Path, table: str, unique: tuple[str, ...], rows: int) -> None:
    """Copy the rows of a table until there are as many as asked for.

    Args:
        path: the peer's file, which nobody else has open.
        table: holds the peer's jobs, at least one of them.
        unique: columns that get a random text in each copy; the primary key counts up by itself.
        rows: how many there are to be.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as con:
        con.execute("PRAGMA synchronous = OFF")
        con.execute("PRAGMA cache_size = -200000")
        columns = [
            name
            for _, name, kind, _, _, key in con.execute(f'PRAGMA table_info("{table}")')
            if not (key and kind.upper() == "INTEGER")
        ]
        values = ["lower(hex(randomblob(16)))" if each in unique else each for each in columns]
        copied = f'INSERT INTO "{table}" ({", ".join(columns)}) SELECT {", ".join(values)}'
        (found,) = con.execute(f'SELECT count(*) FROM "{table}"').fetchone()
        con.execute("BEGIN IMMEDIATE")
        while found < rows:
            found += con.execute(f'{copied} FROM "{table}" LIMIT ?', (rows - found,)).rowcount
        con.execute("COMMIT")
