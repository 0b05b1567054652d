"""Where the package finds its `.sql` files, in every way it can be installed."""

import importlib.resources
from pathlib import Path

import pytest

from lease.db import resources
from tests.support.layouts import as_bare_package, as_checkout, as_wheel, as_zip
from tests.support.processes import output, run_code

JOB_DONE = """
import sys
sys.path.insert(0, sys.argv[1])
import lease
con = lease.open_queue(sys.argv[2])
lease.enqueue(con, {"id": "a", "qty": 1}, 0, 1000)
print(lease.finish(con, lease.claim(con, "w", 0), "ok", 1), lease.__file__)
con.close()
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package folder that the loader takes for its own, on disk and as a resource."""
    place = tmp_path / "site" / "lease"
    place.mkdir(parents=True)
    monkeypatch.setattr(resources, "_PACKAGE", place)
    monkeypatch.setattr(importlib.resources, "files", lambda _name: place)
    return place


def test_prefers_folder_inside_package(package: Path):
    """What was installed with the package wins over a folder beside it."""
    (package / "_sql" / "sqlite").mkdir(parents=True)
    (package.parent / "sql" / "sqlite").mkdir(parents=True)
    (package.parent / "pyproject.toml").touch()

    assert resources.folder("sql", "sqlite").path == str(package / "_sql" / "sqlite")


@pytest.mark.parametrize("kind", ["sql", "migrations"])
def test_finds_folder_of_checkout(package: Path, kind: resources.Kind):
    """A checkout, and so an editable install, has the folder beside the package."""
    beside = package.parent / kind / "sqlite"
    beside.mkdir(parents=True)
    (package.parent / "pyproject.toml").touch()

    assert resources.folder(kind, "sqlite").path == str(beside)


def test_ignores_stray_folder_of_strangers(package: Path):
    """A top-level `sql` folder of another distribution is not ours: no project file is there."""
    (package.parent / "sql" / "sqlite").mkdir(parents=True)

    with pytest.raises(FileNotFoundError):
        resources.folder("sql", "sqlite")


def test_names_missing_folder(package: Path):
    """An incomplete installation is told which folder it lacks and what to do."""
    (package.parent / "pyproject.toml").touch()

    with pytest.raises(FileNotFoundError) as caught:
        resources.folder("migrations", "sqlite")

    assert str(caught.value) == (
        f"the installed lease package lacks its folder {package / '_migrations' / 'sqlite'}; "
        "install lease-queue again"
    )


def test_asks_importer_where_no_file_is(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Where the package is no folder on disk, its importer knows the files."""
    (package / "_sql" / "sqlite").mkdir(parents=True)
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "lease.zip" / "lease")

    assert resources.folder("sql", "sqlite") == package / "_sql" / "sqlite"


@pytest.mark.parametrize("layout", [as_wheel, as_checkout, as_zip])
def test_works_from_layout(tmp_path: Path, layout):
    """A job runs to its end from an installed wheel, a checkout and a zipped wheel."""
    site = layout(tmp_path / "site")
    done = run_code(JOB_DONE, site, tmp_path / "queue.db")

    assert output(done) == f"done {site / 'lease' / '__init__.py'}"


def test_import_fails_without_folders(tmp_path: Path):
    """Code without its `.sql` files fails at import, naming the folder, and picks no other up."""
    site = as_bare_package(tmp_path / "site")
    (site / "sql" / "sqlite").mkdir(parents=True)
    (site / "sql" / "__init__.py").touch()
    done = run_code(JOB_DONE, site, tmp_path / "queue.db")

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"FileNotFoundError: the installed lease package lacks its folder "
        f"{site / 'lease' / '_sql' / 'sqlite'}; install lease-queue again"
    )


@pytest.mark.parametrize("layout", [as_wheel, as_zip])
def test_works_from_path_of_glob_characters(tmp_path: Path, layout):
    """An install path and a temporary folder that read as glob patterns are taken literally."""
    odd = tmp_path / "[x]*?"
    odd.mkdir()
    site = layout(odd / "site")
    done = run_code(JOB_DONE, site, tmp_path / "queue.db", TMPDIR=str(odd))

    assert output(done).startswith("done ")
