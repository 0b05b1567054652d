"""Copies of the package as it stands in a checkout, in an installed wheel and in a zipped one."""

import shutil
import zipfile
from pathlib import Path

import lease
from lease.db.resources import folder

PACKAGE = Path(lease.__file__).parent
SQL = Path(folder("sql", "sqlite").path).parent
MIGRATIONS = Path(folder("migrations", "sqlite").path).parent

_NOT_CODE = shutil.ignore_patterns("__pycache__", "_sql", "_migrations")


def as_bare_package(site: Path) -> Path:
    """Copy the Python code alone."""
    shutil.copytree(PACKAGE, site / "lease", ignore=_NOT_CODE)
    return site


def as_wheel(site: Path) -> Path:
    """Copy the package with its folders inside, as an installer would."""
    as_bare_package(site)
    shutil.copytree(SQL, site / "lease" / "_sql")
    shutil.copytree(MIGRATIONS, site / "lease" / "_migrations")
    return site


def as_checkout(site: Path) -> Path:
    """Copy the package with its folders beside it and the project's file that marks a checkout."""
    as_bare_package(site)
    shutil.copytree(SQL, site / "sql")
    shutil.copytree(MIGRATIONS, site / "migrations")
    (site / "pyproject.toml").touch()
    return site


def as_zip(site: Path) -> Path:
    """Pack the installed layout into one file that Python can import from."""
    unpacked = as_wheel(site / "unpacked")
    packed = site / "lease_queue.whl"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted(unpacked.rglob("*")):
            archive.write(file, file.relative_to(unpacked))
    shutil.rmtree(unpacked)
    return packed
