"""The kind of a file's filesystem, as the system's table of mounts tells it."""

import os
from pathlib import Path

import pytest

from lease.db import filesystem
from lease.db.filesystem import is_network, kind_of


def mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, device: int | None = None
) -> Path:
    """Return a file which a made-up table of mounts puts on a filesystem of that kind."""
    path = tmp_path / "file.db"
    path.touch()
    device = path.stat().st_dev if device is None else device
    number = f"{os.major(device)}:{os.minor(device)}"
    table = tmp_path / "mountinfo"
    table.write_text(
        "20 1 999:9 / /other rw - tmpfs tmpfs rw\n"
        f"21 1 {number} / /a\\040b rw shared:1 master:2 - {kind} x rw\n"
    )
    monkeypatch.setattr(filesystem, "_MOUNTS", str(table))
    return path


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"])
def test_knows_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str):
    """The line of the file's device is found among the others, past its optional fields."""
    path = mounts(tmp_path, monkeypatch, kind)

    assert kind_of(path) == kind
    assert is_network(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "overlay", "tmpfs", "fuseblk"])
def test_knows_a_local_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str):
    """A filesystem of this machine alone is no network."""
    assert kind_of(mounts(tmp_path, monkeypatch, kind)) == kind
    assert not is_network(kind)


def test_tells_nothing_of_an_unknown_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A subvolume has a number that no line has."""
    assert kind_of(mounts(tmp_path, monkeypatch, "nfs", device=os.makedev(998, 7))) is None
    assert not is_network(None)


def test_tells_nothing_without_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A system without /proc is no error."""
    monkeypatch.setattr(filesystem, "_MOUNTS", str(tmp_path / "none"))

    assert kind_of(tmp_path) is None


def test_refuses_a_missing_file(tmp_path: Path):
    """A file that is not there lies nowhere."""
    with pytest.raises(FileNotFoundError):
        kind_of(tmp_path / "none.db")
