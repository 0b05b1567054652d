"""Tell on which kind of filesystem a file lies, and whether SQLite's locks hold there."""

import os

from lease.db.connection import StrPath

_MOUNTS = "/proc/self/mountinfo"

# Their locks reach other machines late, in part or never, and shared memory does not at all.
_NETWORK = {
    "9p",
    "afs",
    "ceph",
    "cifs",
    "fuse.ceph-fuse",
    "fuse.gcsfuse",
    "fuse.glusterfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "smb3",
    "smbfs",
    "virtiofs",
}


def kind_of(path: StrPath) -> str | None:
    """Return the kind of filesystem that holds an existing file.

    Returns:
        A name such as `ext4` or `nfs4`; None where the system tells none, as for a subvolume,
        which has a device number of its own.

    Raises:
        OSError: the file is not there.
    """
    device = os.stat(path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in _mounts():
        mount, _, filesystem = line.partition(" - ")
        if mount.split()[2] == number:
            return filesystem.split()[0]
    return None


def is_network(kind: str | None) -> bool:
    """Return whether a kind of filesystem is known to be shared between machines."""
    return kind in _NETWORK


def _mounts() -> list[str]:
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as mounts:
            return mounts.read().splitlines()
    except OSError:
        # Outside Linux, or in a sandbox without /proc.
        return []
