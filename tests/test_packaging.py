"""The wheel and the source archive: what is in them, and that the wheel alone does the job."""

import email
import email.message
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import lease
from tests.support.layouts import MIGRATIONS, PACKAGE, SQL
from tests.support.processes import ROOT, output, run_code

INFO = f"lease_queue-{lease.__version__}.dist-info"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with both archives: built from the checkout, or those that the tests came with.

    Away from the checkout the code under test was installed from `dist` beside the tests.
    """
    if not (ROOT / "lease").is_dir():
        return ROOT / "dist"
    place = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", place, ROOT],
        capture_output=True,
        timeout=100,
        check=True,
    )
    return place


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The wheel."""
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel alone was installed, without any network."""
    place = tmp_path_factory.mktemp("elsewhere") / "site"
    alone = ("--no-index", "--no-deps", "--target", place)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *alone, wheel],
        capture_output=True,
        timeout=100,
        check=True,
    )
    return place


def metadata(wheel: Path) -> email.message.Message:
    """Read the wheel's metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return email.message_from_bytes(archive.read(f"{INFO}/METADATA"))


def files(place: Path, prefix: str) -> set[str]:
    """Name the files of a folder under a prefix."""
    return {
        f"{prefix}/{file.relative_to(place)}"
        for file in place.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_wheel_holds_package_and_sql(wheel: Path):
    """Every file of the package, of `sql` and of `migrations`, and nothing else: no tests."""
    code = {name for name in files(PACKAGE, "lease") if name.endswith((".py", "/py.typed"))}
    expected = code | files(SQL, "lease/_sql") | files(MIGRATIONS, "lease/_migrations")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    assert "lease/_sql/sqlite/claim_take.sql" in expected
    assert {name for name in names if not name.startswith(INFO)} == expected
    assert len(names) == len(set(names))
    assert f"{INFO}/licenses/LICENSE" in names


def test_wheel_needs_yoyo_alone(wheel: Path):
    """The bare library has one dependency; all others are extras."""
    needs = metadata(wheel).get_all("Requires-Dist")

    assert [need for need in needs if "extra ==" not in need] == ["yoyo-migrations<10,>=9"]
    assert {"cli", "http", "redis", "all"} <= set(metadata(wheel).get_all("Provides-Extra"))


def test_wheel_says_what_it_is(wheel: Path):
    """Name, version and the oldest Python; for any machine."""
    facts = metadata(wheel)

    assert (facts["Name"], facts["Version"]) == ("lease-queue", lease.__version__)
    assert facts["Requires-Python"] == ">=3.11"
    assert wheel.name == f"lease_queue-{lease.__version__}-py3-none-any.whl"


def test_archive_holds_what_the_tests_need(built: Path):
    """The source archive can be tested and built from; nothing of a developer's folder is in it."""
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    top = {name.partition("/")[0] for name in names}

    code = {"lease", "migrations", "sql", "tests", "pyproject.toml", ".sqlfluff"}
    assert top - {".gitignore"} == code | {"CHANGELOG.md", "LICENSE", "README.md", "PKG-INFO"}
    assert {"tests/test_packaging.py", "sql/sqlite/claim_take.sql", "lease/py.typed"} <= names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".db")]


def test_installed_wheel_does_the_job(site: Path, tmp_path: Path):
    """Isolated from the checkout, a job runs from its intake to its end in a new file."""
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import lease
con = lease.open_queue(sys.argv[2])
assert lease.enqueue(con, {"id": "a", "qty": 1}, 0, 60000)
assert lease.run_once(con, "w", lambda: 1, lambda event: event == {"id": "a", "qty": 1}, 1)
con.close()
con = lease.open_queue(sys.argv[2])
print(lease.__file__, con.execute("SELECT status FROM jobs").fetchone())
con.close()
"""
    done = run_code(code, site, tmp_path / "queue.db", flags=("-I", "-X", "utf8"))

    assert output(done) == f"{site / 'lease' / '__init__.py'} ('done',)"


def test_installed_script_starts(site: Path):
    """The console script's target is in the wheel."""
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from importlib.metadata import distribution
(script,) = distribution("lease-queue").entry_points
assert (script.group, script.name) == ("console_scripts", "lease")
print(callable(script.load()), sys.modules[script.module].__file__.startswith(sys.argv[1]))
"""

    assert output(run_code(code, site, flags=("-I",))) == "True True"
