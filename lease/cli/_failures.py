"""Say in one line what is wrong with a file, a library that is missing, or a receiver."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from shlex import quote
from stat import S_ISDIR

import click

from lease.db.connection import StrPath
from lease.db.locked import is_locked
from lease.errors import Refused, UnusableFile

_PRIMARY = 0xFF
_ADVICE = {
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened; check its rights, and that its folder is there and writable"
    ),
    sqlite3.SQLITE_NOTADB: "is no SQLite database; choose another file",
    sqlite3.SQLITE_READONLY: "may only be read; check the rights on the file and its folder",
    sqlite3.SQLITE_CORRUPT: "is damaged; go back to a copy",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full; make room",
    sqlite3.SQLITE_PERM: "may not be opened; check its rights",
    sqlite3.SQLITE_IOERR: "cannot be read or written; check its disk, and try again",
    sqlite3.SQLITE_CONSTRAINT: "contradicts itself and may be damaged; go back to a copy",
}


class Failure(click.ClickException):
    """Something failed or could not be reached; the message says what, why and what to do."""

    exit_code = 1


@contextmanager
def blamed_on(path: StrPath) -> Iterator[None]:
    """Turn what a database file's fault is into one line that names the file."""
    try:
        yield
    except FileNotFoundError as error:
        if os.path.isfile(path):
            raise Failure(str(error)) from error
        missing = (
            f"there is no queue file at {shown(path)}; create it with: lease init {typed(path)}"
        )
        raise Failure(absence(path, missing)) from error
    except UnusableFile as error:
        raise Failure(f"{shown(path)}: {error}") from error
    except sqlite3.Error as error:
        raise Failure(f"{shown(path)} {_advice(path, error)}") from error


@contextmanager
def giving_up(redrive: str) -> Iterator[None]:
    """Turn a receiver that refuses everything into what to do about it.

    Args:
        redrive: the command that releases the jobs, without its options.
    """
    try:
        yield
    except Refused as error:
        raise Failure(
            f"{error}; check --to, then release them with: {redrive} --reason permanent --note WHY"
        ) from error


@contextmanager
def needs_extra(extra: str, command: str) -> Iterator[None]:
    """Turn the import of a library that is not installed into the way to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] == "lease":
            raise
        raise click.UsageError(
            f"'lease {command}' needs the {extra} extra: pip install 'lease-queue[{extra}]'"
        ) from error


def shown(path: StrPath) -> str:
    """Return a path as text that any terminal can show on one line."""
    text = os.fsencode(path).decode(errors="replace")
    return text if text.isprintable() else repr(text)


def typed(path: StrPath) -> str:
    """Return a path as a word of a command that is told, to be typed as it stands."""
    text = shown(path)
    # One that is not printable is shown in quotes already, and cannot be typed.
    return quote(text) if text == os.fsdecode(path) else text


def absence(path: StrPath, missing: str) -> str:
    """Return what to say of a path without an ordinary file; `missing` where nothing is there."""
    try:
        mode = os.stat(path).st_mode
    except PermissionError:
        return f"{shown(path)} cannot be reached; check the rights on its folder"
    except OSError:
        return missing
    kind = "a folder" if S_ISDIR(mode) else "a pipe, a socket or a device"
    return f"{shown(path)} is {kind}; name an ordinary file"


def _advice(path: StrPath, error: sqlite3.Error) -> str:
    if os.path.isdir(path):
        return "is a folder; name a file"
    if is_locked(error):
        return "is locked by another process; try again when it is done"
    code = getattr(error, "sqlite_errorcode", 0)
    return _ADVICE.get(code & _PRIMARY, f"failed: {error}")
