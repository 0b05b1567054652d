"""The loader of the named statements, and the five ways to run one."""

import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import pytest

from lease.db.statements import Statement, parse, read, statement

PICK = Statement("pick", "SELECT :n AS n WHERE :n > 0;")
PAIR = Statement("pair", "SELECT 1 AS n UNION ALL SELECT 2 ORDER BY n;")


@pytest.fixture
def memory():
    """A connection whose owner chose another row shape."""
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    yield connection
    connection.close()


def test_splits_header_from_statement():
    """The leading comment lines are the header; what follows runs, with its own comments."""
    text = "-- pick: one.\n--\n-- Result one\nSELECT\n    -- why\n    1;\n"

    assert parse("pick.sql", text) == Statement("pick", "SELECT\n    -- why\n    1;")


def test_keeps_blank_line_inside_statement():
    """A blank line does not end the statement; common table expressions need one."""
    text = "-- pick: one.\nWITH\none AS (SELECT 1 AS n)\n\nSELECT n FROM one;\n"

    assert parse("pick.sql", text).sql == "WITH\none AS (SELECT 1 AS n)\n\nSELECT n FROM one;"


def test_parses_file_of_header_alone():
    """A file without a statement is an empty statement, and no crash."""
    assert parse("pick.sql", "-- pick: one.\n") == Statement("pick", "")


@pytest.mark.parametrize("text", ["-- take: one.\nSELECT 1;", "SELECT 1;", "", "-- pick one.\n"])
def test_refuses_header_that_names_another(text: str):
    """The header's name is the file's, and the message says both."""
    with pytest.raises(ValueError, match=r"^pick\.sql names its statement '.*'; the two must"):
        parse("pick.sql", text)


def test_reads_only_sql_files(tmp_path: Path):
    """Anything else in the folder is left alone."""
    (tmp_path / "pick.sql").write_text("-- pick: one.\nSELECT 1;\n")
    (tmp_path / "pick.sql.orig").write_text("SELECT 2;")
    (tmp_path / ".sqlfluff").write_text("[sqlfluff]")

    assert read(tmp_path) == {"pick": Statement("pick", "SELECT 1;")}


def test_refuses_name_that_stands_twice(tmp_path: Path):
    """A second file that claims a name already taken is refused by that file's name."""
    (tmp_path / "pick.sql").write_text("-- pick: one.\nSELECT 1;\n")
    (tmp_path / "take.sql").write_text("-- pick: two.\nSELECT 2;\n")

    with pytest.raises(ValueError, match=r"^take\.sql names its statement 'pick'"):
        read(tmp_path)


def test_reads_folder_inside_zip(tmp_path: Path):
    """A folder inside an archive is read like one on disk."""
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("sql/pick.sql", "-- pick: caf\u00e9.\nSELECT 'caf\u00e9';\n")

    assert read(zipfile.Path(tmp_path / "all.zip", "sql/")) == {
        "pick": Statement("pick", "SELECT 'caf\u00e9';")
    }


def test_finds_statement_by_name():
    """A shipped statement is found, and is the same object each time."""
    assert statement("claim_take").name == "claim_take"
    assert statement("claim_take") is statement("claim_take")


def test_refuses_missing_statement_by_name():
    """A name without a file fails at import of the module that asks, and says which."""
    with pytest.raises(LookupError, match=r"^'?sql/sqlite/no_such\.sql is missing; install"):
        statement("no_such")


def test_cannot_be_changed():
    """A statement is frozen."""
    with pytest.raises(AttributeError):
        PICK.sql = "SELECT 2;"


def test_none_returns_nothing(memory: sqlite3.Connection):
    """`none` runs for the effect alone."""
    assert Statement("make", "CREATE TABLE made (n);").none(memory) is None
    assert PAIR.many(memory) == [(1,), (2,)]
    assert Statement("look", "SELECT name FROM sqlite_schema;").many(memory) == [("made",)]


def test_count_returns_changed_rows(memory: sqlite3.Connection):
    """`count` is the number of rows that were changed, zero included."""
    Statement("make", "CREATE TABLE made (n);").none(memory)
    insert = Statement("insert", "INSERT INTO made (n) SELECT 1 WHERE :go UNION ALL SELECT 2;")

    assert insert.count(memory, go=1) == 2
    assert Statement("clear", "DELETE FROM made WHERE n = 9;").count(memory) == 0


def test_one_returns_only_row(memory: sqlite3.Connection):
    """`one` is a plain tuple, whatever rows the connection's owner wants."""
    row = PICK.one(memory, n=1)

    assert row == (1,)
    assert type(row) is tuple


@pytest.mark.parametrize(("asked", "n"), [(PICK, 0), (PAIR, 0)])
def test_one_refuses_any_other_number(memory: sqlite3.Connection, asked: Statement, n: int):
    """`one` fails on no row and on two."""
    with pytest.raises(ValueError, match="values to unpack"):
        asked.one(memory, n=n)


def test_optional_returns_row_or_none(memory: sqlite3.Connection):
    """`optional` is the row, or None where there is none."""
    assert PICK.optional(memory, n=1) == (1,)
    assert PICK.optional(memory, n=0) is None


def test_optional_leaves_no_row_unfetched(memory: sqlite3.Connection):
    """Every row of a RETURNING is fetched, so that the transaction can end."""
    memory.isolation_level = None
    memory.execute("CREATE TABLE made (n)")
    memory.execute("BEGIN")
    insert = Statement("insert", "INSERT INTO made (n) VALUES (1), (2), (3) RETURNING n;")

    assert insert.optional(memory) == (1,)
    memory.execute("COMMIT")
    assert memory.execute("SELECT count(*) FROM made").fetchone()[0] == 3


#: Texts of which some are no UTF-8, as somebody's own SQL may have put them, and how they read.
ODD_TEXTS = [
    (["x'61ff'"], ["a\\xff"]),
    (["x'6100ff'"], ["a\x00\\xff"]),
    (["x'ff'", "x'61'", "x'62'"], ["\\xff", "a", "b"]),
    (["x'61'", "x'ff'", "x'62'"], ["a", "\\xff", "b"]),
    (["x'61'", "x'62'", "x'ff'"], ["a", "b", "\\xff"]),
    (["x'ff'", "x'61'", "x'fe'"], ["\\xff", "a", "\\xfe"]),
]


@pytest.mark.parametrize("text_factory", [str, bytes, lambda _: 1 / 0])
@pytest.mark.parametrize(("stored", "read_as"), ODD_TEXTS)
def test_many_reads_a_text_that_is_none(
    memory: sqlite3.Connection, text_factory: Any, stored: list[str], read_as: list[str]
):
    """No row is lost, before it or behind it, and the connection stays as its owner wants it."""
    memory.text_factory = text_factory
    texts = " UNION ALL ".join(f"SELECT CAST({each} AS TEXT)" for each in stored)

    assert Statement("pick", f"{texts};").many(memory) == [(each,) for each in read_as]
    assert memory.text_factory is text_factory


@pytest.mark.parametrize("text_factory", [str, bytes])
def test_one_reads_a_text_that_is_none(memory: sqlite3.Connection, text_factory: Any):
    """So does `optional`."""
    memory.text_factory = text_factory
    pick = Statement("pick", "SELECT 7 AS n, CAST(x'61ff' AS TEXT) AS text;")

    assert pick.one(memory) == (7, "a\\xff")
    assert pick.optional(memory) == (7, "a\\xff")
    assert memory.text_factory is text_factory


def test_returning_reads_a_text_that_is_none(memory: sqlite3.Connection):
    """The rows are changed once, and the transaction can end."""
    memory.isolation_level = None
    memory.execute("CREATE TABLE made (n, text)")
    for stored in ("61", "ff", "62"):
        memory.execute(f"INSERT INTO made VALUES (0, CAST(x'{stored}' AS TEXT))")
    memory.execute("BEGIN")
    change = "UPDATE made SET n = n + 1 {} RETURNING n, text;"

    assert Statement("all", change.format("")).many(memory) == [(1, "a"), (1, "\\xff"), (1, "b")]
    assert Statement("odd", change.format("WHERE rowid = 2")).one(memory) == (2, "\\xff")
    memory.execute("COMMIT")
    assert PAIR.many(memory) == [(1,), (2,)]
    assert [n for (n,) in memory.execute("SELECT n FROM made")] == [1, 2, 1]


@pytest.mark.parametrize("method", ["one", "optional", "many"])
@pytest.mark.parametrize("text_factory", [str, bytes])
def test_other_failures_of_a_fetch_come_out(
    memory: sqlite3.Connection, text_factory: Any, method: str
):
    """They are no matter of texts, and the connection stays as its owner wants it."""
    memory.text_factory = text_factory
    memory.create_function("fail", 1, lambda n: n if n < 2 else 1 / 0)
    broken = Statement("broken", "SELECT fail(1) AS n UNION ALL SELECT fail(2);")

    with pytest.raises(sqlite3.OperationalError, match="user-defined function raised exception"):
        getattr(broken, method)(memory)
    assert memory.text_factory is text_factory
