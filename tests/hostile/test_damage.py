"""Files that are cut off, overwritten, or have a stranger's journal beside them."""

import os
import random
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lease import jobs
from lease.errors import UnusableFile
from tests.support.cli import Ran
from tests.support.hostile import ON_QUEUE, complaint, listing, ran

NOW = 1_000_000
PAGE = 4096

#: Those that look at a file and send nothing.
LOOKING = [name for name in ON_QUEUE if name != "work"]


@cache
def whole() -> bytes:
    """Return a queue file of many pages, with jobs in every state."""
    with TemporaryDirectory() as folder:
        with closing(jobs.open_queue(f"{folder}/q.db")) as con:
            events = [{"id": f"job-{n}", "qty": n % 1000 + 1} for n in range(300)]
            jobs.enqueue_many(con, events, NOW, 10**9)
            for number in range(150):
                ticket = jobs.claim(con, "w", NOW)
                assert ticket is not None
                if number % 3:
                    jobs.finish(con, ticket, "ok" if number % 2 else "permanent", NOW)
            jobs.redrive(con, "job-4", NOW, 10**9, "why")
        return Path(folder, "q.db").read_bytes()


def cut(data: bytearray, chance: random.Random) -> None:
    """Cut the file off: anywhere, at a page's end, or in its header."""
    del data[
        chance.choice(
            [chance.randrange(len(data)), PAGE * chance.randrange(1, 8), chance.randrange(200)]
        ) :
    ]


def flip(data: bytearray, chance: random.Random) -> None:
    """Flip some bits, of all the file or of its first page."""
    for _ in range(chance.choice([1, 5, 50])):
        data[chance.randrange(len(data) if chance.random() < 0.7 else PAGE)] ^= (
            1 << chance.randrange(8)
        )


def blank(data: bytearray, chance: random.Random) -> None:
    """Overwrite a stretch with zeros, as a bad disk does."""
    size = chance.choice([1, 16, 512, PAGE])
    at = chance.randrange(len(data) - size)
    data[at : at + size] = bytes(size)


def scramble(data: bytearray, chance: random.Random) -> None:
    """Overwrite a stretch with noise."""
    size = chance.choice([1, 16, 512, PAGE])
    at = chance.randrange(len(data) - size)
    data[at : at + size] = chance.randbytes(size)


def misplace(data: bytearray, chance: random.Random) -> None:
    """Put a page in the place of another one."""
    pages = len(data) // PAGE
    here, there = chance.randrange(pages), chance.randrange(pages)
    data[here * PAGE : (here + 1) * PAGE] = data[there * PAGE : (there + 1) * PAGE]


some_seeds = pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 80), marks=pytest.mark.soak)]
)

DAMAGES = [cut, flip, blank, scramble, misplace]


def damaged(damage, seed: int) -> bytes:
    data = bytearray(whole())
    damage(data, random.Random(seed))
    return bytes(data)


def judge(command: str, found: Ran) -> None:
    """Demand one clear line; a doctor who could look at the file has said more, and no less."""
    if command == "doctor" and found.out:
        assert found.err == ""
        assert any(line.startswith("look ") for line in found.out.splitlines())
    else:
        complaint(found)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", LOOKING)
@some_seeds
def test_command_survives_a_damaged_file(tmp_path: Path, command: str, damage, seeds: range):
    """It does its work, or says one line and changes nothing; and nothing steers a terminal."""
    path = tmp_path / "q.db"
    for seed in seeds:
        path.write_bytes(damaged(damage, seed))
        before = listing(tmp_path)
        found = ran(command, path)
        if found.code:
            judge(command, found)
            assert listing(tmp_path) == before, f"seed {seed}"
        assert all(line.isprintable() for line in (found.out + found.err).split("\n"))
        for each in set(os.listdir(tmp_path)) - {"q.db"}:
            (tmp_path / each).unlink()


@pytest.mark.parametrize("damage", DAMAGES)
@some_seeds
def test_verbs_survive_a_damaged_file(tmp_path: Path, damage, seeds: range):
    """A verb works or raises what is SQLite's or ours; it leaves no transaction, and no change."""
    path = tmp_path / "q.db"
    for seed in seeds:
        path.write_bytes(damaged(damage, seed))
        try:
            con = jobs.open_queue(path)
        except (sqlite3.Error, UnusableFile):
            continue
        with closing(con):
            for verb in VERBS:
                before = path.read_bytes()
                try:
                    verb(con)
                except (sqlite3.Error, UnusableFile, ValueError):
                    assert path.read_bytes() == before
                assert not con.in_transaction
        for each in set(os.listdir(tmp_path)) - {"q.db"}:
            (tmp_path / each).unlink()


VERBS = [
    lambda con: jobs.enqueue(con, {"id": "new", "qty": 1}, NOW, 1000),
    lambda con: jobs.enqueue_many(con, [{"id": "job-7", "qty": 8}], NOW, 1000),
    lambda con: jobs.claim_many(con, "x", NOW + 5000, 20),
    lambda con: jobs.claim(con, "x", NOW + 10**9),
    lambda con: jobs.redrive(con, "job-2", NOW, 1000, "n"),
    jobs.next_due,
    jobs.stats,
    jobs.tree_check,
    jobs.tree_rebuild,
    jobs.tally_check,
    jobs.tally_rebuild,
    lambda con: jobs.list_jobs(con, max_jobs=500),
]


def test_message_that_is_no_text_is_an_error_of_sqlite(tmp_path: Path):
    """A damaged schema is quoted in SQLite's words, which the driver then cannot read."""
    path = tmp_path / "q.db"
    path.write_bytes(whole().replace(b"CREATE TABLE jobs", b"CREATE\xb1TABLE jobs"))

    with pytest.raises(sqlite3.DatabaseError, match="no UTF-8"):
        jobs.open_queue(path)


def test_odd_state_is_named(tmp_path: Path):
    """A job in no state that there is: the file is damaged, and says so."""
    path = tmp_path / "q.db"
    with closing(jobs.open_queue(path)) as con:
        jobs.enqueue(con, {"id": "a", "qty": 1}, NOW, 1000)
        con.execute("PRAGMA ignore_check_constraints = ON")
        con.execute("UPDATE jobs SET status = 'daed'")

    assert "in the state 'daed', which is none" in complaint(ran("stats", path))


JOURNALS = {
    "empty": b"",
    "zeros": bytes(5000),
    "noise": random.Random(1).randbytes(5000),
    "magic alone": bytes.fromhex("d9d505f920a163d7"),
    "magic and noise": bytes.fromhex("d9d505f920a163d7") + random.Random(2).randbytes(5000),
    "text": b"this is no journal at all" * 100,
}


@pytest.mark.parametrize("journal", JOURNALS)
@pytest.mark.parametrize("command", LOOKING)
def test_command_survives_a_strangers_journal(tmp_path: Path, command: str, journal: str):
    """What is no journal of this file changes no row of it."""
    path = tmp_path / "q.db"
    path.write_bytes(whole())
    with closing(sqlite3.connect(path)) as con:
        before = con.execute("SELECT * FROM jobs WHERE id != 'job-1'").fetchall()
    (tmp_path / "q.db-journal").write_bytes(JOURNALS[journal])

    found = ran(command, path)
    if found.code:
        judge(command, found)
    with closing(sqlite3.connect(path)) as con:
        assert con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        kept = con.execute("SELECT * FROM jobs WHERE id NOT IN ('job-1', 'new')").fetchall()
    assert kept == before


def test_torn_journal_takes_back_all_or_nothing(tmp_path: Path):
    """A hot journal that was cut off at any length leaves a file that is sound, or is refused."""
    path, journal = tmp_path / "q.db", tmp_path / "q.db-journal"
    path.write_bytes(whole())
    con = sqlite3.connect(path, isolation_level=None)
    con.execute("PRAGMA cache_size = 1")
    con.execute("BEGIN IMMEDIATE")
    con.execute("UPDATE jobs SET token = token + 1000")
    torn, hot = path.read_bytes(), journal.read_bytes()
    con.execute("ROLLBACK")
    con.close()
    assert torn != whole()

    for size in [*range(0, len(hot), len(hot) // 37), len(hot)]:
        path.write_bytes(torn)
        journal.write_bytes(hot[:size])
        found = ran("stats", path)
        if found.code:
            complaint(found)
        if size == len(hot):
            assert found.code == 0
            assert path.read_bytes() == whole()
        journal.unlink(missing_ok=True)
