"""What strangers have put into a file, or answer over HTTP, and what of it reaches a terminal."""

import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lease import jobs
from lease.cli._output import printable
from lease.cli._progress import Progress
from lease.clock import wall_ms
from lease.dispatcher import Result
from lease.errors import Retryable
from tests.support.cli import lease
from tests.support.http import answer, answering, server

#: Clear the screen, set the title, a link, an answerback, overwriting, the other direction, a
#: character of two bytes that older terminals take for an escape, and one that is no character.
EVIL = "a\x1b[2J\x1b]0;owned\x07\x1b]8;;http://evil\x1b\\\x05\r\n\b\u202e\u2066\x9b31m\x00\ud800"


def is_harmless(text: str) -> bool:
    """Tell whether a terminal would print all of it, line by line."""
    return all(line.isprintable() for line in text.split("\n"))


def test_printable_escapes_each_character_that_steers():
    """What can be printed stays as it is; the rest shows what it is."""
    assert printable("é 1 \U0001f600 \\") == "é 1 \U0001f600 \\"
    assert printable("\x1b[2J\n\u202e'\"") == "\\x1b[2J\\n\\u202e'\""
    assert printable(None) == "None"
    assert printable(b"\x1b") == "b'\\x1b'"
    assert is_harmless(printable(EVIL))


def plant(path: Path, **columns: object) -> None:
    """Put a job into a queue by SQL that heeds no rule of its columns."""
    row = {
        "id": "job-1",
        "qty": 1,
        "status": "pending",
        "attempts": 0,
        "max_attempts": 3,
        "token": 0,
        "available_at": 0,
        "deadline": wall_ms() + 3_600_000,
        "owner": None,
        "lease_until": None,
        "reason": None,
    } | columns
    with closing(jobs.open_queue(path)) as con:
        con.execute("PRAGMA ignore_check_constraints = ON")
        con.execute(
            f"INSERT INTO jobs ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
            list(row.values()),
        )


STRANGE = [EVIL.replace("\ud800", ""), b"\x1b[2J\xff", 2.5, "1e400", -(2**63)]


@pytest.mark.parametrize("column", ["id", "owner", "reason", "qty", "available_at", "deadline"])
@pytest.mark.parametrize("value", STRANGE, ids=range(len(STRANGE)))
def test_jobs_shows_whatever_is_in_a_row(queue_path: Path, column: str, value: object):
    """A job that no verb of ours has made is still listed, and steers no terminal."""
    plant(queue_path, **{column: value})

    table, lines, counts = lease("jobs", queue_path), lease("jobs", queue_path, "--json"), None
    counts = lease("stats", queue_path)
    assert (table.code, lines.code, counts.code) == (0, 0, 0)
    assert len(table.out.splitlines()) == 2
    assert is_harmless(table.out + table.err + lines.out + lines.err + counts.out)
    assert lines.out.isascii()
    assert len(lines.json_lines) == 1


def test_jobs_shows_a_text_that_is_none(queue_path: Path):
    """Bytes that are no UTF-8, said to be text, are shown with backslashes."""
    plant(queue_path)
    with closing(sqlite3.connect(queue_path)) as con:
        con.execute("UPDATE jobs SET owner = CAST(x'1b5b324aff' AS TEXT)")
        con.commit()

    found = lease("jobs", queue_path)
    assert (found.code, found.err) == (0, "")
    assert found.out.endswith("\\x1b[2J\\xff\n")
    assert is_harmless(found.out)


def test_work_tells_a_strangers_id_without_harm():
    """Neither the id of a job nor the error of its send steers the terminal they are told on."""
    stream = io.StringIO()
    with Progress(stream) as progress:
        progress.tell_result(Result(EVIL, 1, 1, "pending", 5, Retryable(EVIL)))
        progress.tell_result(Result(EVIL, 1, 1, "stale", 5, None))

    assert is_harmless(stream.getvalue())
    assert len(stream.getvalue().splitlines()) == 2


@pytest.mark.parametrize(
    "response",
    [
        answer("400 \x1b[2J", json.dumps({"error": EVIL}).encode()),
        answer("400 No", json.dumps({"error": EVIL}).encode()),
        answer("503 No", b'{"error": "\x1b[2J"}'),
        answer("200 OK", b"\x1b[2J\xff\x00"),
        answer("200 OK", json.dumps({"accepted": EVIL}).encode()),
        b"\x1b[2J\r\n\r\n",
        b"HTTP/1.1 200 \x1b[2J\r\nX: \x1b[2J\r\nTransfer-Encoding: \x1b\r\n\r\n",
        answer("302 Found", b"", "Location: http://evil/\x1b[2J"),
    ],
    ids=range(8),
)
def test_work_tells_a_receivers_words_without_harm(queue_path: Path, response: bytes):
    """What a receiver gives as its error is quoted, cut, and on one line."""
    plant(queue_path)

    with server(answering(response)) as url:
        found = lease("work", queue_path, "--to", url, "--once", "--timeout", "5s")
    assert found.code == 1
    assert is_harmless(found.out + found.err)
    assert found.err.count("\n") == 1
    assert len(found.err) < 300


@pytest.mark.parametrize(
    "arguments",
    [
        ["--\x1b[2J"],
        ["\x1b[2J"],
        ["stats", "q\x1b[2J"],
        ["stats", "q", "--\x1b[2J"],
        ["jobs", "q", "--status", "\x1b[2J"],
        ["jobs", "q", "--limit", "\x1b[2J"],
        ["redrive", "q", "\x1b[2J", "--note", "n"],
        ["redrive", "q", "a", "--note", "n", "--ttl", "\x1b[2J"],
        ["enqueue", "q", "--from", "\x1b[2J"],
        ["enqueue", "q", "--id", "a", "--qty", "\x1b[2J"],
        ["work", "q", "--to", "\x1b[2J"],
        ["work", "q", "--to", "http://h/", "--owner", "\x1b[2J"],
        ["receive", "--db", "q", "--host", "\x1b[2J"],
        ["receive", "--db", "q", "--port", "\x1b[2J"],
        ["demo", "--to", "\x1b[2J"],
    ],
)
def test_command_tells_an_argument_without_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
):
    """An argument may come from a stranger too, by way of a script."""
    monkeypatch.chdir(tmp_path)

    found = lease(*arguments)
    assert found.code in (1, 2)
    assert found.err.count("\n") == 1
    assert is_harmless(found.out + found.err)


def test_enqueue_tells_a_bad_line_without_harm(queue_path: Path, tmp_path: Path):
    """The lines of a file are a stranger's as a rule, and so is its name."""
    jobs.open_queue(queue_path).close()
    evil = EVIL.replace("\x00", "").replace("\ud800", "")
    source = tmp_path / (evil.replace("/", "") + ".jsonl")
    lines = [json.dumps({"id": EVIL, "qty": 1}), evil.replace("\n", ""), json.dumps({EVIL: 1})]
    source.write_text("\n".join(lines), newline="\n")

    found = lease("enqueue", queue_path, "--from", source)
    assert found.code == 1
    assert len(found.err.splitlines()) == 3
    assert is_harmless(found.out + found.err)
