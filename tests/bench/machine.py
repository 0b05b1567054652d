"""What a run was made on: enough to compare, nothing that names a machine."""

import os
import platform
import sqlite3
from datetime import UTC, datetime
from pathlib import Path


def described(folder: Path) -> str:
    """Return one line: date, cores and load, filesystem of the folder, Python, SQLite."""
    load = os.getloadavg()[0]
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, {os.cpu_count()} cores"
        f" (load {load:.1f} at the start), {filesystem(folder)}, {platform.system()},"
        f" Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    )


def filesystem(folder: Path) -> str:
    """Return the type of the filesystem that a folder lies on; a RAM disk makes syncs free."""
    place = folder.resolve()
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    types = {Path(fields[1]): fields[2] for fields in map(str.split, mounts)}
    return next(types[each] for each in (place, *place.parents) if each in types)
