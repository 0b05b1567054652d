"""The write transaction: BEGIN IMMEDIATE, COMMIT, and a ROLLBACK that hides nothing."""

import sqlite3
from types import TracebackType


class write_transaction:  # noqa: N801  (used as a function, like contextlib's own)
    """Hold the write lock for a `with` block; commit at its end, roll back on any error.

    The lock is taken at the start, since a read that decides must not be made before it.
    COMMIT itself can fail, for instance while another connection reads, and then leaves the
    transaction open: it is rolled back as well. The first error is the one that comes out.

    A block that has changed no row is rolled back, which asks nothing of readers: even an empty
    COMMIT does. Rows alone count; whoever changes the schema writes a row as well, as every
    migration does with its bookkeeping. A write of the caller's own that is still in progress,
    such as an UPDATE whose RETURNING is half read, is refused by either end: by COMMIT, and by
    the SAVEPOINT before ROLLBACK, which would take it back and say nothing.

    Raises:
        sqlite3.ProgrammingError: the connection already has a transaction open; it is left alone.
    """

    __slots__ = ("_changes", "_con")

    def __init__(self, con: sqlite3.Connection) -> None:
        self._con = con

    def __enter__(self) -> None:
        if self._con.in_transaction:
            raise sqlite3.ProgrammingError(
                "the connection already has an open transaction; commit or roll it back first"
            )
        try:
            self._con.execute("BEGIN IMMEDIATE")
            self._changes = self._con.total_changes
        except BaseException as error:
            self._roll_back(error)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self._roll_back(error)
            return
        try:
            if self._con.total_changes == self._changes:
                self._con.execute("SAVEPOINT unchanged")
                self._con.execute("ROLLBACK")
            else:
                self._con.execute("COMMIT")
        except BaseException as failure:
            self._roll_back(failure)
            raise

    def _roll_back(self, error: BaseException) -> None:
        """End what is still open; SQLite has done so itself after some errors."""
        try:
            if self._con.in_transaction:
                self._con.execute("ROLLBACK")
        except Exception as failure:  # noqa: BLE001  (whatever it is, the first error comes out)
            error.add_note(f"ROLLBACK failed as well: {failure}")
