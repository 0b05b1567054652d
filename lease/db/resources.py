"""Find the folders of `.sql` files that ship with the package, however it is installed."""

import os
from collections.abc import Iterator
from typing import Literal, Protocol

Kind = Literal["sql", "migrations"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Place(Protocol):
    """A folder or a file in it, on disk or in an archive; importlib's `Traversable` is one."""

    @property
    def name(self) -> str:
        """Return its last name."""

    def iterdir(self) -> "Iterator[Place]":
        """Return what a folder holds."""

    def read_bytes(self) -> bytes:
        """Return what a file holds."""


class OnDisk:
    """A folder or a file on disk; pathlib takes longer to import than all of `lease`."""

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def name(self) -> str:
        """Return its last name."""
        return os.path.basename(self.path)

    def iterdir(self) -> "Iterator[OnDisk]":
        """Return what a folder holds."""
        return (OnDisk(os.path.join(self.path, name)) for name in os.listdir(self.path))

    def read_bytes(self) -> bytes:
        """Return what a file holds."""
        with open(self.path, "rb") as file:
            return file.read()


def folder(kind: Kind, dialect: str) -> Place:
    """Return the folder of one kind and dialect.

    A wheel carries it inside the package as `_sql` or `_migrations`; a checkout, also an
    editable install, has it beside the package. Only a checkout has `pyproject.toml` there,
    so that a stranger's top-level `sql` folder is never picked up.

    Raises:
        FileNotFoundError: neither is there; the installation is incomplete.
    """
    shipped = os.path.join(_PACKAGE, f"_{kind}", dialect)
    if os.path.isdir(shipped):
        return OnDisk(shipped)
    checkout = os.path.dirname(_PACKAGE)
    beside = os.path.join(checkout, kind, dialect)
    if os.path.isfile(os.path.join(checkout, "pyproject.toml")) and os.path.isdir(beside):
        return OnDisk(beside)
    # Imported only for a zipped wheel, for the same reason as pathlib is not.
    from importlib import resources

    zipped = resources.files("lease").joinpath(f"_{kind}", dialect)
    if zipped.is_dir():
        return zipped
    raise FileNotFoundError(
        f"the installed lease package lacks its folder {shipped}; install lease-queue again"
    )
