"""Open a SQLite file: by path alone, never by accident a new one, private to its user."""

import os
import sqlite3
from contextlib import suppress
from stat import S_IFREG, S_ISDIR, S_ISREG

from lease.errors import UnusableFile

StrPath = str | os.PathLike[str]

# UPDATE ... RETURNING came with this version.
OLDEST_SQLITE = (3, 35, 0)

BESIDE = ("-journal", "-wal", "-shm")


def connect(path: StrPath, *, create: bool = True, timeout_s: float = 1) -> sqlite3.Connection:
    """Return a connection to a file, with no transaction of the driver's own.

    Args:
        path: a file's path, taken to the letter: `?`, `#`, `%` and a leading `file:` mean nothing.
        create: make the file if it is missing, readable and writable by its user alone.
            False never makes one.
        timeout_s: how long a statement waits for another connection's lock, in seconds.

    Raises:
        ValueError: the path is empty or `:memory:`, which name no file.
        UnusableFile: the path, or a name that SQLite uses beside it, is a pipe, a device or such.
        sqlite3.OperationalError: the file cannot be opened.
        sqlite3.NotSupportedError: SQLite is too old.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise sqlite3.NotSupportedError(
            f"SQLite {sqlite3.sqlite_version} lacks RETURNING; use Python with SQLite 3.35 or later"
        )
    name = os.fsdecode(path)
    if name in ("", ":memory:"):
        raise ValueError(f"path must name a file, not {name!r}")
    # Resolved as the system does, links first: `..` behind a link is not the folder before it,
    # and a file that a link only promises would be made by SQLite, for everybody to read.
    name = os.path.realpath(name)
    _refuse_special(name)
    if create:
        _create_private(name)
    return sqlite3.connect(
        _uri(name, mode="rwc" if create else "rw"),
        uri=True,
        isolation_level=None,
        timeout=timeout_s,
    )


def _refuse_special(name: str) -> None:
    """Refuse what waits for ever when it is opened, as a pipe does, or acts on it, as a device."""
    mode = _mode(name)
    if not (S_ISREG(mode) or S_ISDIR(mode)):
        raise UnusableFile("it is a pipe, a socket or a device; name an ordinary file")
    for each in BESIDE:
        if not S_ISREG(_mode(name + each)):
            raise UnusableFile(
                f"{os.path.basename(name)}{each} beside it is no ordinary file; "
                "find out who made it, and remove it"
            )


def _mode(name: str) -> int:
    """Return the kind of a file; of one that is missing or out of reach that of an ordinary one."""
    try:
        return os.stat(name).st_mode
    except OSError:
        return S_IFREG


def _create_private(name: str) -> None:
    # mknod and not open: closing any descriptor of a database drops the locks that this process
    # holds on it. What goes wrong here goes wrong in SQLite's own open, which reports it.
    with suppress(OSError):
        os.mknod(name, 0o600)


def _uri(name: str, mode: str) -> str:
    for special, escaped in (("%", "%25"), ("?", "%3f"), ("#", "%23")):
        name = name.replace(special, escaped)
    return f"file://{name}?mode={mode}"
