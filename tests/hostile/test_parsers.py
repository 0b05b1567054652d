"""Each parser, with whatever there is: an answer or one clear error, soon, in bounded memory."""

import io
import json
import os
import resource
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lease import checks, jobs, wire
from lease.cli._arguments import duration, whole
from lease.db.statements import parse
from lease.intake import LONGEST_LINE, LONGEST_SKIP, enqueue_file, read_records
from lease.limits import MAX_QTY
from lease.outbox._hint import decode, encode
from lease.outbox.accelerator import address
from tests.support.cli import lease
from tests.support.hostile import complaint, in_child, ran

NOW = 1_000_000
DAY_MS = 86_400_000

many = settings(max_examples=100, deadline=None)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
NEARLY_JSON = (
    JSON.map(lambda value: json.dumps(value).encode())
    | st.binary()
    | st.text().map(lambda text: text.encode(errors="surrogatepass"))
)


def attempt(step: Callable[..., Any], *arguments: object) -> tuple[Any, str | None]:
    """Return what a step returns, or None and the words of its refusal: a plain one, of a line."""
    try:
        return step(*arguments), None
    except (ValueError, click.BadParameter) as error:
        said = error.message if isinstance(error, click.BadParameter) else str(error)
        kind = type(error)
    assert kind in (ValueError, click.BadParameter)
    assert said.isprintable()
    return None, said


@many
@given(NEARLY_JSON)
def test_wire_reads_or_refuses(text: bytes):
    """What is read can be written and read again, but for half a character; the rest is refused."""
    value, refused = attempt(wire.parse, text)
    if refused is None:
        again, refused = attempt(wire.canonical, value)
        assert "surrogates not allowed" in (refused or "surrogates not allowed")
        assert again is None or wire.parse(again.encode()) == value


@many
@given(JSON)
def test_wire_writes_one_text_for_one_content(value: object):
    """And writes it again the same, whatever it was made of."""
    text, refused = attempt(wire.canonical, value)

    assert (refused or "payload must be").startswith("payload must be")
    assert text is None or wire.canonical(wire.parse(text.encode())) == text


@pytest.mark.parametrize("text", [b"1e400", b"-1e400", b"[1e999]", b"1" * 400 + b".0"])
def test_wire_refuses_a_number_without_end(text: bytes):
    """A number that no float holds is no number, however it is written."""
    with pytest.raises(ValueError, match="not finite"):
        wire.parse(text)


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_wire_writes_no_deeper_than_everybody_reads():
    """The depth has a bound of its own, far from that of anybody's stack."""
    text = wire.canonical(nested(256))

    assert json.loads(text) == wire.parse(text.encode())
    with pytest.raises(ValueError, match="nested over 256 deep"):
        wire.canonical(nested(257))
    with pytest.raises(ValueError, match="nested over 256 deep"):
        wire.canonical({"a": nested(256)})


@many
@given(st.binary() | st.text(alphabet="idqty,\"'{}[]:0123456789\r\n \t\\éx\x00").map(str.encode))
def test_intake_accounts_for_every_line(source: bytes):
    """Each line that is not blank is an event or has its problem told, in order."""
    for file_format in ("jsonl", "csv"):
        records = list(read_records(io.BytesIO(source), file_format))  # type: ignore[arg-type]
        lines = [each.line for each in records]
        assert lines == sorted(set(lines))
        for each in records:
            if each.event is None:
                assert each.problem.isprintable()
            else:
                job_id, qty = each.event
                assert checks.event({"id": job_id, "qty": qty}) == each.event


CELLS = st.text(max_size=8) | st.integers(-5, MAX_QTY + 5).map(str) | st.just("a")


@pytest.mark.parametrize("partial", [True, False])
def test_intake_takes_all_or_nothing(con: sqlite3.Connection, partial: bool):
    """The counts add up, and without `partial` one bad line keeps out all others."""

    @many
    @given(st.lists(st.tuples(CELLS, CELLS), max_size=8))
    def take_in(pairs: list[tuple[str, str]]) -> None:
        con.execute("DELETE FROM jobs")
        source = "\n".join(",".join(pair) for pair in pairs).encode(errors="replace")
        told: list[int] = []
        found = enqueue_file(
            con,
            io.BytesIO(source),
            "csv",
            NOW,
            1000,
            3,
            partial=partial,
            on_problem=lambda line, _reason: told.append(line),
        )
        assert jobs.stats(con)["jobs"] == found.new
        assert found.refused == len(told)
        assert partial or not found.refused or found.new == found.known == 0

    take_in()


class Endless(io.RawIOBase):
    """Gigabytes without a line's end, made as they are read, and then a good line."""

    left = 10 * 2**30
    end = b'\n{"id": "a", "qty": 1}\n'

    def readline(self, size: int = -1, /) -> bytes:  # type: ignore[override]  # as files do
        assert size > 0
        if self.left > 0:
            self.left -= size
            return CHUNK[:size]
        cut = self.end.find(b"\n", 0, size) + 1 or len(self.end)
        line, self.end = self.end[:cut], self.end[cut:]
        return line


CHUNK = b"x" * (LONGEST_LINE + 1)


@pytest.mark.parametrize(
    ("size", "lines", "longest"), [(2**29, [1, 2], LONGEST_LINE), (10 * 2**30, [1], LONGEST_SKIP)]
)
def test_intake_holds_no_more_than_a_line_of_ten_gigabytes(
    size: int, lines: list[int], longest: int
):
    """What is too long is passed over and never held, and what comes after it read, or given up."""
    source = Endless()
    source.left = size
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    records = list(read_records(source, "jsonl"))
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    assert [each.line for each in records] == lines
    assert records[0].problem.startswith(f"longer than {longest} bytes")
    assert grown_kb < 10_000


def test_command_takes_in_a_long_line_in_little_memory(tmp_path: Path):
    """A pipe that gives three hundred megabytes in a line is read with a sixth of that."""
    jobs.open_queue(tmp_path / "q.db").close()
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)

    def pour() -> None:
        with pipe.open("wb") as lines:
            for _ in range(300):
                lines.write(b"x" * 2**20)
            lines.write(b'\n{"id": "a", "qty": 1}\n')

    def task() -> list[object]:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = lease("enqueue", tmp_path / "q.db", "--from", pipe, "--partial")
        return [found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]

    pouring = threading.Thread(target=pour)
    pouring.start()
    (code, out, err), grown_kb = in_child(task)
    pouring.join()
    assert (code, out) == (1, "1 new, 0 known, 1 refused\n")
    assert "longer than" in err
    assert grown_kb < 50_000


def test_command_takes_in_a_million_bad_lines_in_few_words(tmp_path: Path):
    """They are counted, and the first of them told."""
    jobs.open_queue(tmp_path / "q.db").close()
    found = lease("enqueue", tmp_path / "q.db", "--from", "-", stdin=b"\xff\n" * 200_000)

    assert found.out == "Nothing taken in: 200000 refused\n"
    assert len(found.err) < 2000


BOMBS = [
    b"[" * 4000,
    b'{"id":' * 600,
    b'{"id": "a", "qty": ' + b"9" * 4000 + b"}",
    b'{"id": "a", "qty": 1e4000}',
    b'{"id": "a", "id": "b", "qty": 1}',
    b'{"id": "\\ud800", "qty": 1}',
    b'{"id": "a\\u0000", "qty": 1}',
    b"\x00" * 100,
    b'{"id": "a\'); DROP TABLE jobs; --", "qty": 1}',
    b'{"id": "a", "qty": true}',
    b'{"id": "a", "qty": 1.0}',
    b"{}",
    b"null",
]


@pytest.mark.parametrize("bomb", BOMBS, ids=range(len(BOMBS)))
def test_command_refuses_a_bomb(tmp_path: Path, bomb: bytes):
    """One line for a line, and nothing of the file is taken in."""
    jobs.open_queue(tmp_path / "q.db").close()
    before = (tmp_path / "q.db").read_bytes()
    found = lease(
        "enqueue", tmp_path / "q.db", "--from", "-", stdin=b'{"id": "x", "qty": 1}\n' + bomb
    )

    assert (found.code, found.out) == (1, "Nothing taken in: 1 refused\n")
    assert found.err.startswith("<stdin>:2: ")
    assert found.err.count("\n") == 1
    assert (tmp_path / "q.db").read_bytes() == before


@many
@given(st.text() | st.from_regex(r"[0-9]{1,13}(\.[0-9]{0,4})?(ms|s|m|h|d|w)?", fullmatch=True))
def test_duration_is_one_within_bounds(text: str):
    """A length of time is taken, or told to be none."""
    ms, refused = attempt(duration(DAY_MS), text)

    assert (ms is None) == (refused is not None)
    assert ms is None or 1 <= ms <= DAY_MS


@many
@given(st.text() | st.integers().map(str))
def test_whole_is_one_within_bounds(text: str):
    """A number is in ASCII digits and within its bounds, or told to be none."""
    number, _ = attempt(whole(1, 10**15), text)

    is_one = text.isascii() and text.isdigit() and len(text) <= 16 and 1 <= int(text) <= 10**15
    assert number == (int(text) if is_one else None)


PARTS = st.sampled_from(
    [
        "http://",
        "https://",
        "redis://",
        "spedo://",
        "redis+unix://",
        "//",
        "user:p%40ss@",
        "[::1]",
        "[::",
        "host",
        "127.0.0.1",
        ":80",
        ":0",
        ":99999",
        ":x",
        "/",
        "/0",
        "/path",
        "?q",
        "#f",
        " ",
        "\n",
        "\x00",
        "é",
        "%00",
        "@",
        "\\",
        "..",
    ]
)
URLS = st.text() | st.lists(PARTS, max_size=7).map("".join)


@many
@given(URLS)
def test_url_of_a_receiver_is_one_or_refused(text: str):
    """Whatever is taken has a scheme of ours, a host, a port that there is, and no control."""
    parts, refused = attempt(checks.url, "url", text)
    if refused is not None:
        assert len(text) < 9 or text not in refused
    else:
        assert parts.scheme in ("http", "https")
        assert parts.hostname
        assert parts.port is None or 1 <= parts.port <= 65535
        assert text.isascii()
        assert text.isprintable()
        assert parts == urlsplit(text)


@many
@given(URLS)
def test_url_of_an_accelerator_is_one_or_refused(text: str):
    """Likewise; and its name for messages shows no credentials."""
    target, refused = attempt(address, text)
    if refused is None:
        assert bool(target.host) != bool(target.path)
        assert 1 <= target.port <= 65535
        assert "ss@" not in target.name


@many
@given(NEARLY_JSON)
def test_hint_is_a_record_or_refused(item: bytes):
    """What is popped from an accelerator is a record's copy or one clear error."""
    record, refused = attempt(decode, item)

    assert refused is not None or decode(encode(record)) == record


@many
@given(st.text("ab_.sql-"), st.text() | st.text("-ab_: \n"))
def test_statement_is_named_as_its_file(file_name: str, text: str):
    """A file of SQL is taken with its name in its first line, or refused."""
    found, refused = attempt(parse, file_name, text)
    if refused is None:
        assert file_name == f"{found.name}.sql"
        assert not found.sql.startswith("--")
    else:
        assert "must be alike" in refused


LIMITS = ["a", "a" * 64, "-" * 64, "_", "0" * 64, "A-_9"]


@pytest.mark.parametrize("name", LIMITS)
def test_identifier_at_its_limits_goes_all_the_way(tmp_path: Path, name: str):
    """The longest and the oddest of them pass the command, the queue and back."""
    path = tmp_path / "q.db"
    lease("init", path)

    assert lease("enqueue", path, f"--id={name}", "--qty", MAX_QTY).out == "1 new, 0 known\n"
    with closing(jobs.open_queue(path)) as con:
        ticket = jobs.claim(con, name, int(time.time() * 1000))
        assert ticket is not None
        assert (ticket["id"], ticket["owner"]) == (name, name)
        assert jobs.finish(con, ticket, "permanent", int(time.time() * 1000)) == "dead"
    assert lease("redrive", path, f"--note={name}", "--", name).out == f"{name} is pending again\n"
    assert lease("jobs", path, "--json").json["id"] == name


@pytest.mark.parametrize(
    "name", ["", "a" * 65, "é", "a b", "a\n", "\na", "a\x00", "²", "٣", "a/b", "a.b", "\u200b"]
)
def test_identifier_beyond_its_limits_is_refused_everywhere(tmp_path: Path, name: str):
    """By the command and by the library, before anything changes."""
    path = tmp_path / "q.db"
    lease("init", path)
    before = path.read_bytes()
    for words in (
        ("enqueue", path, f"--id={name}", "--qty", "1"),
        ("redrive", path, "a", f"--note={name}"),
        ("redrive", path, "--note=n", "--", name),
        ("work", path, "--to", "http://127.0.0.1:9/", f"--owner={name}"),
    ):
        found = lease(*words)
        assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert path.read_bytes() == before


@pytest.mark.parametrize("command", ["stats", "enqueue", "redrive", "init", "receive"])
def test_command_gives_up_on_a_lock_that_stays(tmp_path: Path, command: str):
    """Somebody who holds the file for ever costs a command a moment, and the file nothing."""
    path = tmp_path / "q.db"
    jobs.open_queue(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        assert "is locked by another process" in complaint(ran(command, path))
        holder.execute("ROLLBACK")
