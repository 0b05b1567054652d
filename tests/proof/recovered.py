"""Open queue files that others left behind, and tell what is in them.

Run as a program with a folder and the names of files in it; a process of its own, which shares
nothing with those that were killed.
"""

import json
import sys
from contextlib import closing
from pathlib import Path

from lease import jobs
from tests.proof.store import read_book
from tests.support.model import Audit, Book, Job
from tests.support.queue import faults_beside


def recover(folder: Path, names: list[str]) -> dict[str, Book]:
    """Open each file as an application does, check it, and read its rows."""
    found = {}
    for name in names:
        with closing(jobs.open_queue(folder / name, create=False)) as con:
            (verdict,) = con.execute("PRAGMA integrity_check").fetchone()
            assert (verdict, faults_beside(con)) == ("ok", []), name
            found[name] = read_book(con)
    return found


def read(text: str) -> dict[str, Book]:
    """Read what the program has printed."""
    return {
        name: Book(tuple(map(Job._make, jobs)), tuple(map(Audit._make, audits)), last_seq)
        for name, (jobs, audits, last_seq) in json.loads(text).items()
    }


if __name__ == "__main__":
    print(json.dumps(recover(Path(sys.argv[1]), sys.argv[2:])))  # noqa: T201  (its answer)
