"""Find the folders of `.sql` files that ship with the package, however it is installed."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Kind = Literal["sql", "migrations"]

_PACKAGE = Path(__file__).parent.parent


def folder(kind: Kind, dialect: str) -> "Traversable":
    """Return the folder of one kind and dialect.

    A wheel carries it inside the package as `_sql` or `_migrations`; a checkout, also an
    editable install, has it beside the package. Only a checkout has `pyproject.toml` there,
    so that a stranger's top-level `sql` folder is never picked up.

    Raises:
        FileNotFoundError: neither is there; the installation is incomplete.
    """
    shipped = _PACKAGE / f"_{kind}" / dialect
    if shipped.is_dir():
        return shipped
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / kind / dialect).is_dir():
        return checkout / kind / dialect
    zipped = _zipped(kind, dialect)
    if zipped.is_dir():
        return zipped
    raise FileNotFoundError(
        f"the installed lease package lacks its folder {shipped}; install lease-queue again"
    )


def _zipped(kind: Kind, dialect: str) -> "Traversable":
    # Imported only for a zipped wheel: it costs more than all of `lease`.
    from importlib import resources

    return resources.files("lease").joinpath(f"_{kind}", dialect)
