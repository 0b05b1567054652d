"""Bring a file's schema up to date, in one transaction, and refuse a file from the future."""

import sqlite3

from lease.db.resources import folder
from lease.db.statements import Statement, statement
from lease.db.transaction import write_transaction
from lease.errors import UnusableFile

SCHEMA_HAS_BOOKKEEPING = statement("schema_has_bookkeeping")
SCHEMA_APPLIED = statement("schema_applied")

# The command that puts a set into a file.
_MAKES = {"queue": "lease init", "inbox": "lease receive --db", "outbox": "lease outbox init"}

_SHIPPED = sorted(
    file.name.removesuffix(".sql")
    for file in folder("migrations", "sqlite").iterdir()
    if file.name.endswith(".sql") and not file.name.endswith(".rollback.sql")
)


def migrate(
    con: sqlite3.Connection, migration_set: str, probe: Statement, create: bool = True
) -> bool:
    """Apply the migrations of a set that the file lacks; return whether there were any.

    A current file is only read. Otherwise one `BEGIN IMMEDIATE` and one `COMMIT` hold all of
    it, and a second process that waited for the lock finds nothing left to do.

    Args:
        con: a connection with no transaction open.
        migration_set: `queue`, `outbox` or `inbox`; the prefix of the set's files.
        probe: a statement that names every column of the set, tried before the commit, since
            the file may hold a stranger's tables of the same names.
        create: False brings up to date only what is there, and adds no set to a stranger's file.

    Raises:
        UnusableFile: the file has a migration of the set that this version does not know, or
            tables of its own that stand in the way, or, where `create` is False, no tables of
            the set; nothing was changed.
    """
    lacking = missing(con, migration_set)
    if not lacking:
        return False
    if not create and lacking == names_of(migration_set):
        _require_tables(con, migration_set, probe)
    # yoyo takes longer to import than all the rest; a current file never pays for it.
    from lease.db.apply import apply

    with write_transaction(con):
        lacking = missing(con, migration_set)
        if lacking:
            try:
                apply(con, lacking)
                probe.none(con)
            except sqlite3.OperationalError as error:
                first = _first(error)
                if not is_about_sql(first):
                    raise first from None
                raise UnusableFile(_in_the_way(first)) from first
    return bool(lacking)


def has(con: sqlite3.Connection, migration_set: str) -> bool:
    """Tell whether any migration of a set is recorded in the file."""
    return bool(
        SCHEMA_HAS_BOOKKEEPING.optional(con)
        and SCHEMA_APPLIED.many(con, migration_set=migration_set)
    )


def missing(con: sqlite3.Connection, migration_set: str) -> list[str]:
    """Return the names of the set's migrations that the file lacks, in order.

    Raises:
        UnusableFile: the file has a migration of the set that this version does not know.
        FileNotFoundError: none of the set was shipped; the installation is incomplete.
    """
    shipped = names_of(migration_set)
    if not shipped:
        raise FileNotFoundError(
            f"the installed lease package lacks the migrations {migration_set}_*; "
            "install lease-queue again"
        )
    if not SCHEMA_HAS_BOOKKEEPING.optional(con):
        return shipped
    applied = {name for (name,) in SCHEMA_APPLIED.many(con, migration_set=migration_set)}
    unknown = sorted(applied.difference(shipped))
    if unknown:
        raise UnusableFile(
            f"the file has the migration {unknown[0]}, which this version of lease does not know; "
            "upgrade lease-queue"
        )
    return [name for name in shipped if name not in applied]


def names_of(migration_set: str) -> list[str]:
    """Name every migration of a set, in order."""
    return [name for name in _SHIPPED if name.startswith(f"{migration_set}_")]


def _require_tables(con: sqlite3.Connection, migration_set: str, probe: Statement) -> None:
    """Accept a file without bookkeeping only if somebody has made the set's tables by hand."""
    try:
        probe.none(con)
    except sqlite3.OperationalError as error:
        if not is_about_sql(error):
            raise
        raise UnusableFile(
            f"the file holds no {migration_set} ({error}); choose another file, or put one in it "
            f"with: {_MAKES[migration_set]} FILE"
        ) from error


def _in_the_way(error: sqlite3.OperationalError) -> str:
    """Return what to say of a file in which a migration cannot be applied."""
    if str(error).endswith(" already exists"):
        return (
            f"the file does not record a migration whose tables it has ({error}); if it was "
            "applied by hand, record it with yoyo mark, otherwise choose another file"
        )
    return f"the file's own tables are not those of lease ({error}); choose another file"


def _first(error: sqlite3.OperationalError) -> sqlite3.OperationalError:
    """Return the error that began it: a failing disk also ends the transaction under yoyo."""
    while isinstance(before := error.__context__, sqlite3.OperationalError):
        error = before
    return error


def is_about_sql(error: sqlite3.OperationalError) -> bool:
    """Tell whether a statement failed for want of a table or column, not for a lock or a disk."""
    # The driver's own errors, such as that of a text that is no UTF-8, have no code.
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_ERROR
