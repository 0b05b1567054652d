"""The benchmark runs and says everything it promises; how fast anything is, no test asks."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.bench import durability, plot, targets
from tests.bench.clones import multiply
from tests.bench.command import SECTIONS, main
from tests.bench.durability import DELETE_FULL, Setting
from tests.bench.rounds import interleaved
from tests.bench.sections.workers import while_all_worked
from tests.bench.table import Row, Table
from tests.bench.targets import Target
from tests.support.processes import ROOT, environment

TARGETS = {name: each for name, each in vars(targets).items() if isinstance(each, Target)}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run everything once, small; return what it wrote."""
    folder = tmp_path_factory.mktemp("bench")
    # A RAM disk, where there is one: nothing is learnt here from waiting for a real one.
    fast = next(each for each in (Path("/dev/shm"), folder) if os.access(each, os.W_OK))
    written = {name: folder / name for name in ("json", "markdown", "targets", "svg")}
    options = [text for name, path in written.items() for text in (f"--{name}", str(path))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--quick", "--folder", str(fast), *options],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    files = {name: path.read_text(encoding="utf-8") for name, path in written.items()}
    lines = [json.loads(line) for line in files["json"].splitlines()]
    return {**files, "text": done.stdout, "machine": lines[0], "rows": lines[1:]}


def test_measures_every_section(quick: dict[str, Any]):
    """No section comes out empty, and they stand in their order."""
    assert list(dict.fromkeys(row["section"] for row in quick["rows"])) == list(SECTIONS)


def test_measures_or_says_why_not(quick: dict[str, Any]):
    """A row has its numbers, or says that a peer is not installed."""
    silent = [row["what"] for row in quick["rows"] if not row["samples"] and not row["note"]]

    assert silent == []


@pytest.mark.parametrize("name", TARGETS)
def test_holds_every_target_against_a_row(quick: dict[str, Any], name: str):
    """Each figure that must hold is measured, or its peer is reported as missing."""
    named = TARGETS[name]._asdict()
    found = [row for row in quick["rows"] if row["target"] == named]

    assert found
    assert all(row["held"] is not None or row["note"] for row in found)


@pytest.mark.parametrize(
    "what",
    [
        "limit: DELETE \\+ FULL: one transaction, rows changed: 1$",
        "verbs: (enqueue|claim|renew|finish|redrive), (DELETE|WAL) \\+ FULL",
        "verbs: claim \\+ finish, DELETE \\+ FULL",
        "shapes: claim in the worst shape of 300 rows",
        "shapes: claim, 300 rows: no index at all",
        "pages: (enqueue|claim|finish), 100 jobs ready",
        "peers: lease-queue \\(DELETE \\+ FULL\\): put, take, acknowledge",
        "peers: lease-queue \\(DELETE \\+ FULL\\): put, take, acknowledge after 5 jobs",
        "peers: (litequeue|persist-queue|monlite|queue-max|spoolctl|ballast-py|localqueue|honker)",
        "backlog: litequeue: claim, 100 jobs waiting",
        "workers: 4 worker processes: least served against best served",
        "sender: sender of 20 ms, concurrency (1|32)",
        "open: open_queue and close, (current|new) file",
        "import: python -c 'import lease.worker'",
        "memory: worker on [0-9,]+ jobs, at its peak",
    ],
)
def test_has_row(quick: dict[str, Any], what: str):
    """A section says what it is there for."""
    named = [f"{row['section']}: {row['what']}" for row in quick["rows"]]

    assert [name for name in named if re.match(what, name)]


def test_writes_the_same_in_every_form(quick: dict[str, Any]):
    """Text and Markdown hold each row, under the line about the machine."""
    names = [row["what"] for row in quick["rows"]]

    assert quick["machine"]["machine"] in quick["text"]
    assert [name for name in names if name not in quick["text"]] == []
    assert [name for name in names if f"| {name} |" not in quick["markdown"]] == []
    assert len(quick["targets"].splitlines()) == 4 + sum(
        map(bool, (r["target"] for r in quick["rows"]))
    )


def test_draws_a_picture(quick: dict[str, Any]):
    """The plot is well-formed, with a line for each shape and one for no index at all."""
    root = ET.fromstring(quick["svg"])
    lines = root.findall(".//{http://www.w3.org/2000/svg}polyline")

    assert len(lines) == 8
    assert "no index at all" in quick["svg"]
    assert "no index at all" in quick["text"]


def test_names_no_place(quick: dict[str, Any]):
    """What is written can be published: no folder of this machine is in it."""
    assert str(ROOT) not in quick["json"] + quick["markdown"] + quick["svg"]


def test_refuses_an_unknown_section(capsys: pytest.CaptureFixture[str]):
    """A misspelt section is named, with those that there are."""
    with pytest.raises(SystemExit) as ended:
        main(["--quick", "shape"])

    assert ended.value.code == 2
    assert "there is no section shape; choose from: limit, verbs, shapes" in capsys.readouterr().err


def test_interleaves_turn_by_turn():
    """Cases alternate, in chunks, and a round's value is its median."""
    order = []
    values = iter([1, 10, 3, 30, 2, 20, 5, 50, 5, 50, 5, 50])

    def case(name: str):
        def run() -> dict[str, float]:
            order.append(name)
            return {name: next(values)}

        return run

    samples = interleaved((case("a"), case("b")), rounds=2, turns=3)

    assert order == ["a", "b"] * 6
    assert samples.of("a") == [2, 5]
    assert samples.of("b", 0.5) == [10, 25]
    assert samples.ratios("b", "a") == [10, 10]
    assert "c" not in samples


def test_interleaves_in_chunks():
    """A chunk is a case's calls in a row."""
    order = []
    cases = [lambda name=name: order.append(name) or {} for name in "ab"]

    interleaved(cases, rounds=1, turns=2, chunk=2)

    assert order == list("aabbaabb")


def test_interleaves_in_mixed_order():
    """Each turn goes through all cases once, and no case always comes in the wake of another."""
    order: list[str] = []
    cases = [lambda name=name: order.append(name) or {} for name in "abc"]

    interleaved(cases, rounds=5, turns=4, mixed=True)

    turns = ["".join(order[at : at + 3]) for at in range(0, len(order), 3)]
    assert all(sorted(turn) == list("abc") for turn in turns)
    assert len(set(turns)) > 1


@pytest.mark.parametrize(
    ("target", "measured", "held"),
    [
        (Target("x", "<=", 2), 2, True),
        (Target("x", "<=", 2), 2.001, False),
        (Target("x", ">=", 30), 30, True),
        (Target("x", ">=", 30), 29.99, False),
    ],
)
def test_holds_target_up_to_its_bound(target: Target, measured: float, held: bool):
    """The bound itself is kept; ratios count before values."""
    assert Row("it", [99], ratios=[measured], target=target).held is held
    assert Row("it", [measured], target=target).held is held


def test_tells_kept_from_missed_and_unmeasured():
    """A missed target is named; one that was not measured is neither kept nor missed."""
    table = Table("a machine")
    table.add(
        "one",
        [
            Row("kept", [1], target=Target("x", "<=", 1)),
            Row("missed", [2, 3], target=Target("x", "<=", 1)),
        ],
    )
    table.add(
        "two", [Row("absent", note="not installed", target=Target("x", ">=", 1)), Row("plain", [1])]
    )

    assert table.missed() == ["one: missed"]
    assert [row.cells("")[-1] for _, row in table.rows] == ["yes", "no", "-", ""]
    assert "plain" not in table.markdown(only_targets=True)


def test_plots_one_size_and_one_cost():
    """Lines that span no decade are drawn all the same."""
    lines = plot.series([Row("claim, 1 rows: flat", [5.0], size=1), Row("unplotted", [1.0])])

    assert lines == {"flat": [(1, 5.0)]}
    assert "a  flat" in plot.text(lines)
    ET.fromstring(plot.svg(lines, "<machine> & more"))


def test_counts_workers_while_all_are_at_it():
    """What one did before another began, or after another ended, says nothing about turns."""
    assert while_all_worked([[0, 1, 2, 3, 4], [2, 3, 9]]) == ([3, 2], 2)
    assert while_all_worked([[0, 1], []]) == ([2, 0], 0)


def test_puts_a_setting_in_place_of_the_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A peer that sets WAL and NORMAL runs with what was asked for, and that is read back."""
    monkeypatch.setattr(sqlite3, "connect", sqlite3.connect)
    for name, asked, expected in (
        ("pinned", DELETE_FULL, DELETE_FULL),
        ("own", None, Setting("WAL", "NORMAL")),
    ):
        folder = tmp_path / name
        folder.mkdir()
        durability.watch(folder, asked)
        with closing(sqlite3.connect(str(folder / "peer.db"))) as con:
            con.execute("PRAGMA journal_mode = WAL")
            con.execute("PRAGMA synchronous=NORMAL")
            con.execute("CREATE TABLE jobs (id)")
            con.execute("INSERT INTO jobs VALUES (1)")
            con.commit()
            assert durability.read_back(folder) == expected
        assert durability.read_back(folder) == expected


def test_multiplies_rows(tmp_path: Path):
    """A backlog is made of copies, each with a key of its own."""
    path = tmp_path / "peer.db"
    with closing(sqlite3.connect(path)) as con:
        con.execute("CREATE TABLE t (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, body TEXT)")
        con.execute("INSERT INTO t (id, body) VALUES ('a', 'x')")
        con.commit()

    multiply(path, "t", ("id",), 7)

    with closing(sqlite3.connect(path)) as con:
        rows = con.execute("SELECT count(*), count(DISTINCT id), min(body), max(body) FROM t")
        assert rows.fetchone() == (7, 7, "x", "x")
