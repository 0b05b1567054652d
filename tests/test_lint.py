"""sqlfluff over the SQL that ships, and proof that each rule relied on would report."""

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.support.layouts import MIGRATIONS, SQL
from tests.support.processes import ROOT

SQLFLUFF = Path(sysconfig.get_path("scripts"), "sqlfluff")

# Each is one breach of one rule; the statement is else as it should be.
BAD = {
    "keyword_case": ("capitalisation.keywords", "select seq\nfrom jobs;\n"),
    "identifier_case": ("capitalisation.identifiers", "SELECT Seq\nFROM Jobs;\n"),
    "function_case": ("capitalisation.functions", "SELECT MIN(seq) AS low\nFROM jobs;\n"),
    "literal_case": ("capitalisation.literals", "UPDATE jobs SET owner = null;\n"),
    "type_case": ("capitalisation.types", "CREATE TABLE notes (seq integer);\n"),
    "expression_without_as": (
        "aliasing.expression",
        "SELECT\n    seq,\n    qty + 1\nFROM jobs;\n",
    ),
    "table_alias_without_as": ("aliasing.table", "SELECT job.seq\nFROM jobs job;\n"),
    "column_alias_without_as": ("aliasing.column", "SELECT qty + 1 more\nFROM jobs;\n"),
    "short_alias": ("aliasing.length", "SELECT jo.seq\nFROM jobs AS jo;\n"),
    "unused_alias": ("aliasing.unused", "SELECT seq\nFROM jobs AS job;\n"),
    "no_final_semicolon": ("convention.terminator", "SELECT seq\nFROM jobs\n"),
    "not_equal": ("convention.not_equal", "SELECT seq\nFROM jobs\nWHERE seq != 1;\n"),
    "is_null": ("convention.is_null", "SELECT seq\nFROM jobs\nWHERE owner = NULL;\n"),
    # SQLite would take it for a column, and for a text only if there is no such column.
    "double_quotes": (
        "references.quoting",
        'SELECT seq\nFROM jobs\nWHERE status IN ("done", "dead");\n',
    ),
    "clock": ("convention.blocked_words", "SELECT strftime('%s') AS now_s;\n"),
    "clock_word": ("convention.blocked_words", "SELECT CURRENT_TIMESTAMP AS now_s;\n"),
    "chance": ("convention.blocked_words", "SELECT random() AS chance;\n"),
    "replace": (
        "convention.blocked_words",
        "INSERT OR REPLACE INTO jobs (seq)\nVALUES (1);\n",
    ),
    "join_without_kind": (
        "ambiguous.join",
        "SELECT jobs.seq\nFROM jobs\nJOIN redrives ON jobs.id = redrives.id;\n",
    ),
    "unqualified_in_join": (
        "references.qualification",
        "SELECT seq\nFROM jobs\nINNER JOIN redrives ON jobs.id = redrives.id;\n",
    ),
    "mixed_qualification": (
        "references.consistent",
        "SELECT\n    seq,\n    jobs.qty\nFROM jobs;\n",
    ),
    "order_by_direction": (
        "ambiguous.order_by",
        "SELECT seq\nFROM jobs\nORDER BY seq, qty DESC;\n",
    ),
    "limit_without_order": (
        "ambiguous.order_by_limit",
        "SELECT seq\nFROM jobs\nLIMIT 1;\n",
    ),
    "star": ("ambiguous.column_count", "SELECT *\nFROM jobs;\n"),
    "indent": ("layout.indent", "SELECT seq\nFROM jobs\nWHERE\nseq = 1;\n"),
    "long_line": (
        "layout.long_lines",
        f"SELECT seq\nFROM jobs\nWHERE id = '{'x' * 90}';\n",
    ),
    "select_targets": ("layout.select_targets", "SELECT seq, qty\nFROM jobs;\n"),
    "ignored_by_comment": (
        "capitalisation.keywords",
        "select seq -- noqa\nFROM jobs; -- noqa: disable=all\n",
    ),
}


def lint(place: Path, *folders: str) -> dict[str, set[str]]:
    """Return the names of the rules that each file breaks, under the project's own settings."""
    shutil.copy(ROOT / ".sqlfluff", place)
    done = subprocess.run(
        [SQLFLUFF, "lint", "--format", "json", "--nofail", *folders],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return {
        file["filepath"]: {breach["name"] or breach["code"] for breach in file["violations"]}
        for file in json.loads(done.stdout)
    }


def test_shipped_sql_is_clean(tmp_path: Path):
    """Every file that ships was looked at, and none breaks a rule."""
    shutil.copytree(SQL, tmp_path / "sql")
    shutil.copytree(MIGRATIONS, tmp_path / "migrations")
    found = lint(tmp_path, "sql", "migrations")

    assert {path: names for path, names in found.items() if names} == {}
    shipped = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.sql")}
    assert found.keys() == shipped


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What is reported for each bad sample, all of them looked at in one run."""
    place = tmp_path_factory.mktemp("bad")
    (place / "sql").mkdir()
    for name, (_, text) in BAD.items():
        (place / "sql" / f"{name}.sql").write_text(text)
    (place / "sql" / "good.sql").write_text("SELECT seq\nFROM jobs;\n")
    return lint(place, "sql")


@pytest.mark.parametrize("name", BAD)
def test_reports_breach(reported: dict[str, set[str]], name: str):
    """The rule is in force: its breach is reported, by its name."""
    assert BAD[name][0] in reported[f"sql/{name}.sql"]


def test_passes_good_sample(reported: dict[str, set[str]]):
    """What breaks nothing is not reported."""
    assert reported["sql/good.sql"] == set()
