"""The migration files: names, text, rollback, and that a released one is never edited."""

import hashlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlparse
from yoyo import read_migrations

from lease.db.apply import BorrowedConnection, apply
from lease.db.connection import connect
from lease.db.transaction import write_transaction
from tests.support.layouts import MIGRATIONS
from tests.support.statements import bare, split

# The bytes of every released migration, in the format of sha256sum. A new one is added by running
#     cd migrations && sha256sum sqlite/*.sql > ../tests/migrations.sha256
PINS = Path(__file__).with_name("migrations.sha256")

FILES = {str(file.relative_to(MIGRATIONS)): file for file in sorted(MIGRATIONS.rglob("*.sql"))}
UP = [file for file in FILES.values() if not file.name.endswith(".rollback.sql")]
SETS = sorted({file.name.partition("_")[0] for file in UP})

every_file = pytest.mark.parametrize("file", FILES.values(), ids=FILES)
every_set = pytest.mark.parametrize("migration_set", SETS)


def names_of(migration_set: str) -> list[str]:
    """Name a set's migrations in order."""
    return [file.stem for file in UP if file.stem.startswith(f"{migration_set}_")]


def schema(con: sqlite3.Connection) -> set[tuple[str, str]]:
    """Read the catalogue but for yoyo's tables."""
    rows = con.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    return {row for row in rows if not row[0].startswith(("_yoyo", "sqlite_"))}


@pytest.fixture
def con(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a new file."""
    with closing(connect(tmp_path / "file.db")) as made:
        yield made


def test_finds_the_files():
    """There is something to check."""
    assert len(names_of("queue")) >= 2


def test_bytes_are_those_released():
    """A migration that files may already have had is never edited, renamed or taken away."""
    pinned = dict(line.split("  ")[::-1] for line in PINS.read_text().splitlines())
    found = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in FILES.items()}

    assert found == pinned, f"for a new migration see the note beside PINS in {__file__}"


@every_file
def test_text_is_plain(file: Path):
    """Only ASCII, since yoyo reads in the encoding of the locale; no directive of yoyo's either."""
    text = file.read_text(encoding="ascii")

    assert "\r" not in text
    assert text.endswith(";\n")
    assert not re.search(r"^\s*--\s*(depends|transactional)\s*:", text, re.MULTILINE)


@every_file
def test_begins_with_its_reason(file: Path):
    """The leading comment says what it is for; a change also says what it costs."""
    comment, _ = split(file.read_text())

    assert re.fullmatch(r"-- [A-Z].*[.;:,\w]", comment[0])
    if file in UP:
        assert comment[-1].startswith("-- Cost on a large table: ")
    else:
        assert comment[0].startswith("-- Removes ")


@every_file
def test_splits_as_sqlite_would(file: Path):
    """yoyo cuts the file where SQLite sees a statement end, also inside a trigger."""
    _, text = split(file.read_text())
    whole, start = [], 0
    for end in (found.end() for found in re.finditer(";", text)):
        if sqlite3.complete_statement(text[start:end]):
            whole.append(text[start:end].strip())
            start = end

    assert whole
    assert [each for each in sqlparse.split(text) if each.strip()] == whole


@every_file
def test_leaves_the_transaction_to_us(file: Path):
    """No statement begins, ends or escapes the one transaction around all migrations."""
    _, text = split(file.read_text())
    words = set(re.findall(r"\w+", bare(text).upper()))

    assert words.isdisjoint({"COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "ATTACH", "VACUUM"})
    assert "PRAGMA" not in words
    assert not re.search(r"\bBEGIN\s*(IMMEDIATE|EXCLUSIVE|TRANSACTION|;)", text)


def test_each_has_a_rollback():
    """Changes and rollbacks come in pairs."""
    paired = {file.with_suffix(".rollback.sql") for file in UP}

    assert {file for file in FILES.values() if file not in UP} == paired


@every_set
def test_numbers_leave_no_gap(migration_set: str):
    """A set counts from 1; the names are lower case."""
    names = names_of(migration_set)

    assert all(re.fullmatch(r"[a-z]+_\d{4}(_[a-z0-9]+)+", name) for name in names)
    assert [int(name.split("_")[1]) for name in names] == list(range(1, len(names) + 1))


def test_names_are_unique():
    """yoyo knows a migration by its file's stem alone, so one stands in one folder."""
    assert len({file.stem for file in UP}) == len(UP)


@every_set
def test_rollback_undoes_each_step(con: sqlite3.Connection, migration_set: str):
    """Each rollback leads back to exactly the schema before its migration."""
    backend = BorrowedConnection(con)
    known = {each.id: each for each in read_migrations(str(MIGRATIONS / "sqlite"))}
    with write_transaction(con):
        for name in names_of(migration_set):
            before = schema(con)
            apply(con, [name])
            after = schema(con)
            backend.rollback_one(known[name])
            assert schema(con) == before
            apply(con, [name])
            assert schema(con) == after != before


def test_sets_share_one_file(con: sqlite3.Connection):
    """All sets fit into one file, in any order, and none has an object of another's."""
    alone = []
    for migration_set in SETS:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
            with write_transaction(memory):
                apply(memory, names_of(migration_set))
            alone.append(schema(memory))
    with write_transaction(con):
        for migration_set in reversed(SETS):
            apply(con, names_of(migration_set))

    assert schema(con) == set().union(*alone)
    assert len(schema(con)) == sum(map(len, alone))


@every_set
def test_text_of_schema_is_that_of_the_files(con: sqlite3.Connection, migration_set: str):
    """What SQLite stored is what a DBA reads in the folder."""
    with write_transaction(con):
        apply(con, names_of(migration_set))
    texts = "".join(
        (MIGRATIONS / "sqlite" / f"{n}.sql").read_text() for n in names_of(migration_set)
    )
    plain = texts.replace(" IF NOT EXISTS", "")

    assert [name for name, sql in schema(con) if sql not in plain] == []


def test_names_clash_with_no_word_of_sql(con: sqlite3.Connection):
    """Tables are plural or a mass noun; an index says whose it is and what for."""
    with write_transaction(con):
        for migration_set in SETS:
            apply(con, names_of(migration_set))
    indexes = con.execute(
        "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
    ).fetchall()

    assert indexes
    for name, table in indexes:
        assert re.fullmatch(rf"{table}_[a-z_]+_u?idx", name)
