"""`lease receive`: a real process that accepts events, and what keeps it from starting."""

import json
import os
import signal
import socket
import sys
from pathlib import Path
from unittest.mock import patch

import httpx
import pytest

from tests.support.cli import ended, lease, receiving, started
from tests.support.http import rows


def test_receive_accepts_an_event_once(tmp_path: Path) -> None:
    """A repeat is accepted as well and has no second effect; JSON tells where to send."""
    inbox = tmp_path / "inbox.db"
    with receiving(inbox) as url:
        for _ in range(2):
            answer = httpx.post(url, json={"id": "a", "qty": 3})
            assert answer.json()["accepted"] is True

    assert rows(inbox) == ([("a", 3, 2)], [("a", 3)])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_receive_tells_where_and_ends_at_a_signal(tmp_path: Path, number: int) -> None:
    """A person reads the address; either signal is an orderly end."""
    inbox = tmp_path / "in box.db"
    with started("receive", "--db", inbox) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        ran = ended(process, number)

    assert line.startswith("Receiving at http://127.0.0.1:")
    assert line.endswith(f"/ into {inbox}\n")
    assert ran == (0, "", "")


def test_receive_listens_where_it_is_told(tmp_path: Path) -> None:
    """Port and address are options."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = lease("receive", "--db", tmp_path / "inbox.db", "--port", port)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"lease: cannot listen on 127.0.0.1 port {port}: Address already in")
    assert list(tmp_path.iterdir()) == []

    with started(
        "receive", "--db", tmp_path / "i.db", "--host", "::1", "--port", port, "--json"
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == {
            "url": f"http://[::1]:{port}/",
            "db": str(tmp_path / "i.db"),
        }
        ended(process, signal.SIGTERM)


def test_receive_ends_quietly_if_nobody_reads_its_address(tmp_path: Path) -> None:
    """A closed pipe is no address that cannot be listened on."""
    reader, writer = os.pipe()
    os.close(reader)
    with started("receive", "--db", tmp_path / "inbox.db", stdout=writer) as process:
        os.close(writer)
        code, _, err = ended(process)

    assert (code, err) == (1, "")


def test_receive_refuses_a_file_that_is_no_inbox(tmp_path: Path) -> None:
    """The line names the file."""
    assert lease("receive", "--db", tmp_path) == (
        1,
        "",
        f"lease: {tmp_path} is a folder; name a file\n",
    )


@pytest.mark.parametrize(
    "arguments", [(), ("--db", ""), ("--db", "i.db", "--port", "65536"), ("--db", "i.db", "x")]
)
def test_receive_refuses(arguments: tuple[str, ...]) -> None:
    """Unusable arguments are told before anything is opened."""
    assert lease("receive", *arguments).code == 2


def test_receive_without_its_extra_tells_what_to_install(tmp_path: Path) -> None:
    """The command line alone cannot serve."""
    with patch.dict(sys.modules, {"uvicorn": None}):
        for name in ("lease.inbox.http", "lease.inbox._server"):
            sys.modules.pop(name, None)
        ran = lease("receive", "--db", tmp_path / "inbox.db")

    assert ran == (
        2,
        "",
        (
            "lease: 'lease receive' needs the http extra: pip install 'lease-queue[http]'; "
            "see 'lease receive --help'\n"
        ),
    )
