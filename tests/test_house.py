"""The rules of the house that no linter knows."""

import ast
import importlib.metadata
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lease
from tests.support.layouts import PACKAGE
from tests.support.processes import output, run_code

MODULES = {
    ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts): file
    for file in sorted(PACKAGE.rglob("*.py"))
}
TREES = {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in MODULES.items()}

# What lies directly under `lease/`, by layer; a layer imports from itself and from those before.
LAYERS = (
    {"errors", "limits", "checks", "model", "clock", "wire", "breaker"},
    {"db"},
    {"jobs", "inbox", "delivery"},
    {"outbox", "worker", "dispatcher", "intake"},
    {"__init__"},  # the public names
    {"demo"},
    {"cli", "__main__"},
)
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}

# Whoever raises ValueError apart from `checks`: not for a caller's argument, or not for its value.
RAISES_VALUE_ERROR = {
    "lease.db.statements",  # at import, for a file whose header names another statement
    "lease.wire",  # for a text from outside that is no JSON
    "lease.outbox._address",
    "lease.outbox.accelerator",  # for a server's URL, which it takes apart
    "lease.db.connection",  # for a path that names no file, in any of a path's types
}

# Whoever runs SQL that is not a literal in its place.
RUNS_SQL = {
    "lease.db.statements",  # the named statements
    "lease.db.apply",  # the migrations
    "lease.db.keepers",  # the same, to see what they make
}

TRANSACTION = {"BEGIN IMMEDIATE", "COMMIT", "ROLLBACK", "SAVEPOINT unchanged"}

SQL_TEXT = re.compile(
    r"""\s*(?:
        (?:SELECT|VALUES|WITH|PRAGMA|EXPLAIN|SAVEPOINT|RELEASE|ATTACH|DETACH)\s+[\w*("]
        | (?:INSERT|REPLACE)\s+(?:OR\s+\w+\s+)?INTO\s
        | UPDATE\s+(?:OR\s+\w+\s+)?\w+\s+SET\s
        | DELETE\s+FROM\s
        | (?:CREATE|DROP|ALTER)\s+(?:TEMP\w*\s+|UNIQUE\s+|VIRTUAL\s+)?(?:TABLE|INDEX|VIEW|TRIGGER)\s
        | (?:BEGIN|COMMIT|ROLLBACK|END|VACUUM|ANALYZE|REINDEX)(?:\s+[A-Z]+)?\s*;?\s*$
        | .*\s(?:FROM|WHERE|JOIN|RETURNING|ORDER\ BY|GROUP\ BY|LIMIT)\s+[\w:("?].*;\s*$
    )""",
    re.VERBOSE | re.DOTALL,
)


def texts(tree: ast.AST) -> Iterator[str]:
    """Give every text of a module apart from docstrings."""
    prose = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            prose.add(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in prose:
            yield node.value


def executed(tree: ast.AST) -> Iterator[str | None]:
    """Give what a module hands to a cursor to run: a literal's text, or None for anything else."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("execute", "executemany", "executescript")
        ):
            literal = node.args and isinstance(node.args[0], ast.Constant)
            yield node.args[0].value if literal else None


def raised(tree: ast.AST) -> Iterator[str]:
    """Name the exceptions that a module raises anew."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(error, ast.Name):
                yield error.id


def imported(tree: ast.AST) -> Iterator[str]:
    """Name every part of `lease` that a module imports from, early or late."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (part_of(each.name) for each in node.names if is_ours(each.name))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "an import names its module in full"
            if node.module == "lease":
                yield from (part_of(f"lease.{each.name}") for each in node.names)
            elif is_ours(node.module):
                yield part_of(node.module)


def is_ours(module: str | None) -> bool:
    """Tell whether a module belongs to the package."""
    return module is not None and module.split(".")[0] == "lease"


def part_of(module: str) -> str:
    """Return what lies directly under `lease/` and holds a module; `__init__` for a public name."""
    part = [*module.split("."), "__init__"][1]
    return part if f"lease.{part}" in MODULES or f"lease.{part}.__init__" in MODULES else "__init__"


every_module = pytest.mark.parametrize("name", MODULES)


@every_module
def test_holds_no_sql(name: str):
    """No text is SQL; queries live in files that a DBA can read."""
    found = [text for text in texts(TREES[name]) if SQL_TEXT.match(text)]

    assert set(found) <= TRANSACTION
    assert not found or name == "lease.db.transaction"


@every_module
def test_runs_no_other_sql(name: str):
    """Only the three words of a transaction are run as literals, and only the loader runs more."""
    found = set(executed(TREES[name]))

    assert found - {None} <= TRANSACTION
    assert None not in found or name in RUNS_SQL


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "\n  SELECT seq\n  FROM jobs",
        "WITH a AS (SELECT 1) SELECT 2",
        "PRAGMA synchronous",
        "INSERT OR IGNORE INTO jobs VALUES (1)",
        "UPDATE jobs SET qty = 1",
        "DELETE FROM jobs",
        "CREATE TABLE jobs (seq)",
        "CREATE UNIQUE INDEX a ON jobs (id)",
        "COMMIT;",
        "BEGIN EXCLUSIVE",
        "VACUUM",
    ],
)
def test_knows_sql(text: str):
    """What a careless change might put into a module is seen."""
    assert SQL_TEXT.match(text)


@pytest.mark.parametrize(
    "text",
    [
        "ROLLBACK failed as well: ",
        "Select a job by its id.",
        " lacks RETURNING; use Python with SQLite 3.35 or later",
        "with",
        "update",
        "Delete from the inbox what is older.",
    ],
)
def test_knows_prose(text: str):
    """A message may speak of SQL."""
    assert not SQL_TEXT.match(text)


def test_names_collide_with_no_standard_module():
    """A folder that is put on `sys.path` itself must not hide the standard library."""
    names = {place.stem for place in PACKAGE.iterdir() if place.suffix in ("", ".py")}

    assert names >= {"worker", "db"}
    assert names.isdisjoint(sys.stdlib_module_names - {"__init__"})


@every_module
def test_imports_go_one_way(name: str):
    """A module imports from its own layer or one before it; each part stands in the table."""
    part = part_of(name)
    assert part in LAYER, f"say in LAYERS where lease.{part} belongs"

    assert {each for each in imported(TREES[name]) if LAYER[each] > LAYER[part]} == set()


def test_imports_make_no_circle():
    """The parts can be read in an order in which each only needs those before it."""
    needs: dict[str, set[str]] = {part: set() for part in LAYER}
    for name, tree in TREES.items():
        needs[part_of(name)] |= set(imported(tree)) - {part_of(name)}
    while free := {part for part, others in needs.items() if not others}:
        needs = {part: others - free for part, others in needs.items() if part not in free}

    assert needs == {}


LATE = {"yoyo", "sqlparse", "click", "httpcore", "httpx", "starlette", "uvicorn", "anyio", "redis"}
LATE |= {"dataclasses", "inspect", "pathlib", "importlib.resources", "importlib.metadata", "json"}
LATE |= {"tempfile", "logging", "argparse", "socket", "ssl", "http", "email", "uuid", "asyncio"}


def test_import_is_light():
    """`import lease` loads no optional dependency, no migration runner and nothing slow."""
    code = "import sys; before = set(sys.modules); import lease; print(*set(sys.modules) - before)"
    loaded = set(output(run_code(code, flags=("-S",), PYTHONPATH=str(PACKAGE.parent))).split())

    assert "lease.worker" in loaded
    assert loaded & LATE == set()
    assert {name for name in loaded if name.startswith("lease.")} <= set(MODULES) | {
        f"lease.{part}" for part in LAYER
    }


@every_module
def test_refuses_input_in_one_place(name: str):
    """Only a `checks` raises ValueError, apart from the table of exceptions above."""
    allowed = name in RAISES_VALUE_ERROR or name.endswith(".checks")

    assert "ValueError" not in raised(TREES[name]) or allowed


def test_exceptions_of_the_house_are_needed():
    """The tables of exceptions name only modules that make use of them."""
    assert {name for name in RAISES_VALUE_ERROR if "ValueError" in raised(TREES[name])} == (
        RAISES_VALUE_ERROR
    )
    assert {name for name in RUNS_SQL if None in executed(TREES[name])} == RUNS_SQL


def test_version_is_that_of_the_distribution():
    """The package and its metadata say the same."""
    assert importlib.metadata.version("lease-queue") == lease.__version__


def test_public_names_are_sorted_and_there():
    """Each public name exists, once."""
    assert sorted(lease.__all__) == sorted(set(lease.__all__))
    assert [name for name in lease.__all__ if not hasattr(lease, name)] == []


@pytest.mark.parametrize("name", lease.__all__)
def test_public_names_are_documented(name: str):
    """A class or function says itself what it is for; a plain value does so in the module."""
    thing = getattr(lease, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        assert thing.__doc__
        assert thing.__doc__.strip()
        assert thing.__doc__.strip()[0].isupper()


@every_module
def test_module_says_its_idea(name: str):
    """Each module begins with what it is for."""
    text = ast.get_docstring(TREES[name])

    assert text
    assert text.splitlines()[0].endswith((".", ":"))


@every_module
def test_module_stays_small(name: str):
    """One idea a module."""
    assert len(MODULES[name].read_text(encoding="utf-8").splitlines()) <= 300


def test_package_says_it_is_typed():
    """Type checkers read the annotations of an installed package only where this file lies."""
    assert Path(PACKAGE, "py.typed").is_file()
