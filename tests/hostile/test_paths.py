"""A path that names no ordinary file, or a file that such a thing stands beside."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from lease import UnusableFile, open_queue, run_file
from lease.dispatcher import Dispatcher
from lease.inbox import open_inbox
from lease.outbox import open_outbox
from tests.support.hostile import COMMANDS, ON_NEW, complaint, listing, ran


def folder(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def bound(path: Path) -> None:
    # By a relative name: that of a socket has a hundred bytes at most.
    before = Path.cwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(path.name)
    os.chdir(before)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


Make = Callable[[Path], None]

SPECIAL = [pipe, bound, device]
every_command = pytest.mark.parametrize("command", COMMANDS)


@every_command
@pytest.mark.parametrize("make", [folder, *SPECIAL, loop])
def test_command_refuses_what_is_no_file(tmp_path: Path, command: str, make: Make):
    """Each command says so in one line, opens nothing that it would wait for, changes nothing."""
    make(tmp_path / "it")
    before = listing(tmp_path)

    said = complaint(ran(command, tmp_path / "it"))
    assert str(tmp_path / "it") in said
    assert listing(tmp_path) == before


@pytest.mark.parametrize("make", [folder, *SPECIAL])
@pytest.mark.parametrize("command", ["init", "stats", "work", "receive"])
def test_command_names_what_stands_there(tmp_path: Path, command: str, make: Make):
    """Nobody is sent to create a queue where something else is in the way."""
    make(tmp_path / "it")

    said = complaint(ran(command, tmp_path / "it"))
    assert ("is a folder" if make is folder else "a pipe, a socket or a device") in said
    assert "lease init" not in said


@every_command
@pytest.mark.parametrize("name", ["no/file", "file/file", "n" * 300])
def test_command_refuses_what_cannot_be(tmp_path: Path, command: str, name: str):
    """A folder that is missing or no folder, and a name that is too long."""
    (tmp_path / "file").touch()
    before = listing(tmp_path)

    complaint(ran(command, tmp_path / name))
    assert listing(tmp_path) == before


@pytest.mark.parametrize("command", [each for each in COMMANDS if each not in ON_NEW])
def test_command_follows_no_link_to_nothing(tmp_path: Path, command: str):
    """A link that dangles is a missing file, which only `init` and `receive` make."""
    (tmp_path / "it").symlink_to("target")
    before = listing(tmp_path)

    complaint(ran(command, tmp_path / "it"))
    assert listing(tmp_path) == before


@every_command
def test_command_refuses_what_stands_beside(tmp_path: Path, command: str):
    """A pipe in the place of a journal would hold every opening for ever."""
    opener = open_outbox if command.startswith("outbox") else open_queue
    opener(tmp_path / "it").close()
    pipe(tmp_path / "it-journal")
    before = listing(tmp_path)

    said = complaint(ran(command, tmp_path / "it"))
    assert "it-journal beside it is no ordinary file" in said
    assert listing(tmp_path) == before


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("make", [folder, *SPECIAL])
@pytest.mark.parametrize("opener", [open_queue, open_inbox, open_outbox])
def test_library_refuses_what_stands_beside(
    tmp_path: Path, opener: Callable[[Path], object], make: Make, suffix: str
):
    """Whatever it is, and beside which file."""
    make(tmp_path / f"it{suffix}")
    before = listing(tmp_path)

    with pytest.raises(UnusableFile, match=f"it{suffix} beside it is no ordinary file"):
        opener(tmp_path / "it")
    assert listing(tmp_path) == before


@pytest.mark.parametrize("make", SPECIAL)
@pytest.mark.parametrize("opener", [open_queue, open_inbox, open_outbox])
def test_library_refuses_what_is_no_file(tmp_path: Path, opener: Make, make: Make):
    """The library likewise, by its own exception."""
    make(tmp_path / "it")

    with pytest.raises(UnusableFile, match="pipe, a socket or a device"):
        opener(tmp_path / "it")


@pytest.mark.parametrize("make", [folder, *SPECIAL])
def test_worker_asks_for_an_ordinary_file(tmp_path: Path, make: Make):
    """What claims from an existing file takes nothing else for one."""
    make(tmp_path / "it")

    with pytest.raises(FileNotFoundError):
        run_file(tmp_path / "it", "w", lambda: 0, lambda _event: True, 0)
    with pytest.raises(FileNotFoundError):
        Dispatcher(tmp_path / "it", lambda _event: True, owner="w").run("once")
