"""A bulk redrive that is killed; run as `python -m tests.cli.redrive_child FUNCTION ARGUMENTS`."""

import json
import os
import signal
import sys
from typing import Any

from lease import jobs
from lease.cli import _redriving
from lease.cli._root import run


def redrive_and_die(path: str, size: int, batches: int, point: str) -> None:
    """Run the command in batches of that size, and die in the batch of that number."""
    _redriving._BATCH = size
    release = jobs.redrive_many
    begun = 0

    def dying(*arguments: Any) -> Any:
        nonlocal begun
        begun += 1
        return release(*arguments, fault=die if begun == batches else None)

    def die(boundary: str) -> None:
        if boundary == point:
            os.kill(os.getpid(), signal.SIGKILL)

    jobs.redrive_many = dying
    sys.exit(run(["redrive", path, "--all", "--note", "mended"]))


if __name__ == "__main__":
    globals()[sys.argv[1]](*json.loads(sys.argv[2]))
