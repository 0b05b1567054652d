"""Every named statement against its header: parameters, columns, callers and plans."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from lease.db.apply import apply
from lease.db.connection import connect
from lease.db.migrations import _SHIPPED
from lease.db.statements import parse
from lease.db.transaction import write_transaction
from tests.support.layouts import PACKAGE, SQL
from tests.support.statements import (
    Header,
    fetched,
    has_comma_join,
    has_positional,
    has_star,
    header,
    methods,
    parameters,
    resolve,
)

FILES = {file.stem: file for file in sorted(SQL.glob("sqlite/*.sql"))}

VALUES = {"blob": b"x", "integer": 1, "real": 1.0, "text": "x"}

# Whatever depends on the moment, on chance or on what the connection did before.
CLOCKS = {"date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"}
CLOCKS |= {"current_date", "current_time", "current_timestamp"}
CHANCE = {"random", "randomblob", "last_insert_rowid", "changes", "total_changes"}

# How each table is filled for ANALYZE: as a queue looks after a while, mostly done. A table that
# triggers keep needs no entry.
ROWS = """
WITH RECURSIVE row (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row WHERE n < 3000)
"""
FILL = {
    "jobs": """
        INSERT INTO jobs (id, qty, status, attempts, max_attempts, token, available_at, deadline,
            owner, lease_until, reason)
        SELECT 'job-' || n, 1 + n % 9,
            CASE WHEN n % 50 = 0 THEN 'pending' WHEN n % 99 = 0 THEN 'leased'
                WHEN n % 20 = 0 THEN 'dead' ELSE 'done' END,
            1, 3, 1, n, n + 60000,
            CASE WHEN n % 50 > 0 AND n % 99 = 0 THEN 'w' END,
            CASE WHEN n % 50 > 0 AND n % 99 = 0 THEN n + 1000 END,
            CASE WHEN n % 50 > 0 AND n % 99 > 0 AND n % 20 = 0 THEN 'exhausted' END
        FROM row
        """,
    "redrives": "INSERT INTO redrives SELECT n, 'job-' || n, 1, n, 'note' FROM row",
    "inbox": "INSERT INTO inbox SELECT 'job-' || n, 1, 1, n, n FROM row",
    "inbox_events": """
        INSERT INTO inbox_events SELECT n, 'job-' || n, 'made', '{}', 1, n, n FROM row
        """,
    "effects": "INSERT INTO effects SELECT n, 'job-' || n, 1, n FROM row",
    "outbox": """
        INSERT INTO outbox (id, event_type, payload_json, state, created_at, processed_at)
        SELECT 'job-' || n, 'made', '{}', CASE WHEN n % 50 THEN 'processed' ELSE 'pending' END,
            '2026-01-01T00:00:00Z', CASE WHEN n % 50 THEN '2026-01-01T00:00:' || n END
        FROM row
        """,
    "yoyo_lock": "INSERT INTO yoyo_lock SELECT 1, '2026-01-01', 1",
    "deliveries": "INSERT INTO deliveries SELECT 'job-' || n, '{}', '2026-01-01' FROM row",
}


def header_of(name: str) -> Header:
    """Read a file's header."""
    return header(FILES[name].read_text(encoding="utf-8"))


def sql_of(name: str) -> str:
    """Read a file's statement as the library runs it."""
    return parse(f"{name}.sql", FILES[name].read_text(encoding="utf-8")).sql


def values_of(name: str) -> dict[str, object]:
    """Return a value of the declared type for each parameter."""
    return {
        each.name: "[]" if each.meaning.startswith("JSON") else VALUES[each.type]
        for each in header_of(name).parameters
    }


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A database with every set's tables: empty, and filled and analysed."""
    with closing(connect(tmp_path_factory.mktemp("schema") / "all.db")) as con:
        with write_transaction(con):
            apply(con, _SHIPPED)
            # The yoyo command makes this one, in any file on which it works.
            con.execute("CREATE TABLE yoyo_lock (locked INT PRIMARY KEY, ctime TEXT, pid INT)")
        empty = con.serialize()
        tables = con.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' "
            "AND name NOT LIKE '\\_yoyo%' ESCAPE '\\' AND name NOT LIKE 'sqlite%'"
        ).fetchall()
        for (table,) in tables:
            if table in FILL:
                con.execute(ROWS + FILL[table])
        for (table,) in tables:
            assert con.execute(f"SELECT count(*) FROM {table}").fetchone() > (0,), table
        con.execute("ANALYZE")
        return {"empty": empty, "analysed": con.serialize()}


@pytest.fixture
def empty(images: dict[str, bytes]) -> Iterator[sqlite3.Connection]:
    """The empty database, in memory."""
    yield from opened(images["empty"])


@pytest.fixture(params=["empty", "analysed"])
def either(
    images: dict[str, bytes], request: pytest.FixtureRequest
) -> Iterator[sqlite3.Connection]:
    """Each database in turn, in memory."""
    yield from opened(images[request.param])


def opened(image: bytes) -> Iterator[sqlite3.Connection]:
    """Load an image, and close it afterwards."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as con:
        con.deserialize(image)
        con.execute("PRAGMA ignore_check_constraints = ON")
        yield con


every_file = pytest.mark.parametrize("name", FILES)


def test_finds_the_files():
    """There is something to check, and nothing but statements in the folder."""
    assert {"claim_take", "claim_quarantine", "finish_settle"} <= FILES.keys()
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)+", name) for name in FILES)


@every_file
def test_header_is_complete(name: str):
    """Each part of the header is there, in order, and the name is the file's."""
    text = FILES[name].read_text(encoding="ascii")
    assert header(text).name == name
    assert not re.search(r"[ \t]+$|\t", text, re.MULTILINE)


@every_file
def test_parameters_are_those_of_the_statement(name: str):
    """The block of parameters names each `:name` of the statement once, and no other."""
    declared = [each.name for each in header_of(name).parameters]

    assert sorted(declared) == sorted(parameters(sql_of(name)))


@every_file
def test_parameters_stand_in_columns(name: str):
    """Types and meanings of the parameters are aligned."""
    lines = [line for line in FILES[name].read_text().splitlines() if line.startswith("--   :")]
    starts = {tuple(part.start() for part in re.finditer(r"\S+", line))[2:4] for line in lines}

    assert len(starts) <= 1


@every_file
def test_result_is_what_the_statement_returns(empty: sqlite3.Connection, name: str):
    """The columns are those of the cursor, in order; without columns no row comes back."""
    declared = header_of(name)
    cursor = empty.execute(sql_of(name), values_of(name))

    if declared.result in ("none", "count"):
        assert declared.columns == ()
        assert cursor.fetchall() == []
    else:
        assert declared.columns == tuple(column[0] for column in cursor.description)


@every_file
def test_callers_run_it_as_declared(name: str):
    """Each caller exists; its module fetches the statement and uses the method of the result."""
    declared = header_of(name)
    assert declared.callers

    for caller in declared.callers:
        module, function = resolve(caller)
        assert callable(function)
        assert methods(module, name) == {declared.result}


def test_every_fetch_is_declared():
    """A module fetches only statements that exist and that name it as a caller."""
    callers = {}
    for name in FILES:
        for caller in header_of(name).callers:
            callers.setdefault(caller.rpartition(".")[0], set()).add(name)
    found = {}
    for file in PACKAGE.rglob("*.py"):
        if names := fetched(file):
            parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
            found[".".join(parts)] = names

    assert found == callers


@every_file
def test_plan_is_what_sqlite_does(either: sqlite3.Connection, name: str):
    """Each index named is used, and no table is read whole unless the header says why."""
    declared = header_of(name)
    steps = plan(either, sql_of(name), values_of(name))

    used = {index for step in steps for index in indexes_of(step)}
    assert set(declared.indexes) <= used, steps
    if declared.plan in ("-", "none"):
        assert not [step for step in steps if step.startswith(("SCAN", "SEARCH"))]
    elif declared.scans:
        # The aggregate min() makes SQLite say SEARCH, by no index, where it reads every row.
        assert [step for step in steps if re.match(r"SCAN|SEARCH \w+$", step)], steps
    else:
        assert declared.indexes
        assert whole_tables(steps) == [], steps


def plan(con: sqlite3.Connection, sql: str, values: dict[str, object]) -> list[str]:
    """Return the steps of SQLite's plan."""
    return [row[3] for row in con.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def indexes_of(step: str) -> list[str]:
    """Name the indexes of a step; wording around them differs between versions."""
    found = re.findall(r"\bINDEX (\w+)", step)
    return [*found, "PRIMARY KEY"] if "PRIMARY KEY" in step else found


def whole_tables(steps: list[str]) -> list[str]:
    """Return the steps that read a stored table from end to end, in no index's order."""
    made = {step.split()[1] for step in steps if step.startswith(("MATERIALIZE", "CO-ROUTINE"))}
    return [
        step
        for step in steps
        if step.startswith("SCAN")
        and not re.search(r"USING (COVERING )?INDEX|VIRTUAL TABLE|CONSTANT ROW", step)
        and step.split()[1] not in made
    ]


@every_file
def test_reads_no_clock_and_no_chance(empty: sqlite3.Connection, name: str):
    """Time and chance are the caller's, so that a statement always does the same."""
    functions = called(empty, sql_of(name), values_of(name))

    assert functions.isdisjoint(CLOCKS | CHANCE)


def called(con: sqlite3.Connection, sql: str, values: dict[str, object]) -> set[str]:
    """Name the functions that SQLite finds in a statement."""
    functions: set[str] = set()

    def note(action: int, _first, name: str | None, *_where) -> int:
        if action == sqlite3.SQLITE_FUNCTION:
            functions.add(str(name).lower())
        return sqlite3.SQLITE_OK

    con.set_authorizer(note)
    con.execute(f"EXPLAIN {sql}", values).close()
    return functions


@every_file
def test_is_one_careful_statement(name: str):
    """One statement, every column by its name, every join in words, every parameter by its name."""
    sql = sql_of(name)

    assert sql.endswith(";")
    assert sqlite3.complete_statement(sql)
    assert not sqlite3.complete_statement(sql[:-1])
    assert not has_star(sql)
    assert not has_comma_join(sql)
    assert not has_positional(sql)


GOOD = """\
-- pick_one: read one.
--
-- Parameters
--   :id      text     identifier
--   :now_ms  integer  caller's clock, milliseconds
-- Result     optional; id, qty,
--            status
-- Called by  lease.a.b, lease.c.d
-- Plan       jobs_open_idx, PRIMARY KEY
--
-- Why.
SELECT 1;
"""


def test_header_reads_every_part():
    """A header of all parts is read to the letter."""
    assert header(GOOD) == Header(
        name="pick_one",
        purpose="read one.",
        parameters=(
            ("id", "text", "identifier"),
            ("now_ms", "integer", "caller's clock, milliseconds"),
        ),
        result="optional",
        columns=("id", "qty", "status"),
        callers=("lease.a.b", "lease.c.d"),
        plan="jobs_open_idx, PRIMARY KEY",
    )
    assert header(GOOD).indexes == ("jobs_open_idx", "PRIMARY KEY")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("-- pick_one: read one.", "-- pick_one: read one"),
        ("-- pick_one: read one.", "-- pick_one"),
        ("-- pick_one: read one.", "-- Pick: read one."),
        ("--\n-- Parameters", "-- Parameters"),
        ("-- Parameters\n", "-- Params\n"),
        ("text     identifier", "string   identifier"),
        ("text     identifier", "text"),
        ("--   :id ", "--   id "),
        ("optional;", "maybe;"),
        ("-- Result     optional; id, qty,\n--            status\n", ""),
        ("-- Called by  lease.a.b, lease.c.d\n", ""),
        ("-- Plan       jobs_open_idx, PRIMARY KEY\n", ""),
        ("jobs_open_idx, PRIMARY KEY", "scan"),
        ("jobs_open_idx, PRIMARY KEY", "scan ()"),
        ("jobs_open_idx, PRIMARY KEY", "uses an index"),
        ("--\n-- Why.", "-- Why."),
    ],
)
def test_header_refuses_what_is_wrong(right: str, wrong: str):
    """A part that is missing, misspelt or out of place is not passed over."""
    assert right in GOOD
    with pytest.raises(AssertionError):
        header(GOOD.replace(right, wrong))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM b, c;",
        "SELECT a FROM b AS bbb, c AS ccc WHERE 1;",
        "SELECT a FROM (SELECT x FROM y) AS bbb, c;",
        "SELECT (SELECT 1 FROM a, b) AS n FROM c;",
        "UPDATE a SET n = 1 FROM b, c WHERE 1;",
        "SELECT a FROM b INNER JOIN c USING (d), e;",
    ],
)
def test_finds_comma_join(sql: str):
    """A comma between tables is seen at every depth."""
    assert has_comma_join(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, b FROM c ORDER BY a, b;",
        "SELECT (SELECT 1 FROM a) AS n, m FROM c WHERE a IN (1, 2) GROUP BY a, b;",
        "SELECT a FROM b INNER JOIN c ON min(d, e) = f;",
        "SELECT ', ' FROM b -- , c\n;",
        "WITH a AS (SELECT 1 FROM b), c AS (SELECT 2 FROM d) SELECT e FROM a INNER JOIN c ON 1;",
    ],
)
def test_passes_other_commas(sql: str):
    """A comma elsewhere is no join."""
    assert not has_comma_join(sql)


def test_finds_star_and_positions():
    """Stars that stand for columns, and parameters without a name, are seen; others are not."""
    for sql in ("SELECT * FROM a", "DELETE FROM a RETURNING *", "SELECT b, a.* FROM a"):
        assert has_star(sql)
    for sql in ("SELECT count(*) AS n FROM a", "SELECT 2 * :n AS n", "SELECT '*' AS n"):
        assert not has_star(sql)
    for sql in ("SELECT ?", "SELECT ?1", "SELECT @n", "SELECT $n"):
        assert has_positional(sql)
    assert not has_positional("SELECT :n, '?' -- ?")


@pytest.mark.parametrize(
    "sql", ["SELECT CURRENT_TIMESTAMP;", "SELECT date('now');", "SELECT random();"]
)
def test_finds_clock_and_chance(empty: sqlite3.Connection, sql: str):
    """SQLite itself tells which functions a statement calls."""
    assert called(empty, sql, {}) & (CLOCKS | CHANCE)


def test_finds_whole_tables(empty: sqlite3.Connection):
    """A scan of a table is seen, under an alias as well; one in an index's order is not."""
    assert whole_tables(plan(empty, "SELECT qty FROM jobs AS each_job", {}))
    assert not whole_tables(plan(empty, "SELECT id FROM jobs ORDER BY id", {}))
    assert not whole_tables(plan(empty, "SELECT qty FROM jobs WHERE id = 'a'", {}))
    recursive = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3)"
    assert not whole_tables(plan(empty, f"{recursive} SELECT n FROM r", {}))
