"""The command line: arguments in, one call of the library, text or JSON out."""

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the `lease` command with the process's arguments and exit with its code."""
    try:
        from lease.cli._root import run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write(
            "lease: the command line needs the cli extra: pip install 'lease-queue[cli]'\n"
        )
        sys.exit(2)
    _prepare_streams()
    sys.exit(run())


def _prepare_streams() -> None:
    """Put something harmless in place of closed streams, and let any path be printed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  (for as long as we run)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a text file
