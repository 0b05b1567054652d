"""The walk-through of `lease outbox demo`: a lost delivery and a repeated one, three effects."""

import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing

from lease.db.connection import StrPath
from lease.outbox._apply import apply
from lease.outbox._dispatch import dispatch
from lease.outbox._find import delivered, find
from lease.outbox._open import open_outbox
from lease.outbox._pending import pending
from lease.outbox._receive import receive
from lease.outbox._record import record
from lease.outbox.accelerator import Accelerator
from lease.outbox.model import Record

# More than the four deliveries that there are to be: a fifth would show.
_POP = 16

_EVENTS = (
    ("001", {"invoice": "INV-1001", "to": "ada@example.test"}),
    ("002", {"invoice": "INV-1002", "to": "grace@example.test"}),
    ("003", {"invoice": "INV-1003", "to": "edsger@example.test"}),
)

Say = Callable[[str], object]


class DemoError(Exception):
    """Something that the demo is to show did not hold."""


def run_demo(accelerator: Accelerator, path: StrPath, run_id: str, say: Say) -> None:
    """Lose one delivery, repeat another, and verify three effects from the database.

    The server is asked before anything is made. Only this run's records are touched.

    Args:
        accelerator: a queue of this run's own.
        path: the outbox; it and its folder are created if missing.
        run_id: an identifier that no other run has.
        say: told each step.

    Raises:
        AcceleratorError: the server failed.
        DemoError: what was to be shown did not hold.
        OSError, sqlite3.Error, UnusableFile: the file cannot serve.
    """
    accelerator.ping()
    say(f"The {accelerator.name} lets us in and answers PING")
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    # A file of this moment needs no write-ahead log; one that is in use keeps what it has.
    with closing(open_outbox(path, journal_mode=None)) as con:
        made = [
            record(con, "invoice.ready", payload, id=f"demo-{run_id}-{number}")
            for number, payload in _EVENTS
        ]
        say(f"Three events are recorded in {os.fsdecode(path)}")
        _lose(con, accelerator, made, say)
        _redispatch(con, accelerator, made, say)
        effects = _work(con, accelerator, say)
        _verify(con, made, effects)


def _lose(con: sqlite3.Connection, accelerator: Accelerator, made: list[Record], say: Say) -> None:
    dispatch(con, accelerator, made[:1])
    lost = receive(accelerator, 1)
    _demand(lost == made[:1], f"the first delivery was {lost}, not the first record")
    _demand(_state(con, made[0]) == "pending", "the first record is not pending")
    say("1. The first is dispatched, popped and dropped, as in a crash: it is still pending")


def _redispatch(
    con: sqlite3.Connection, accelerator: Accelerator, made: list[Record], say: Say
) -> None:
    ours = [each for each in pending(con) if each in made]
    _demand(ours == made, f"{len(ours)} of 3 records are pending")
    dispatch(con, accelerator, ours)
    say("2. All three are dispatched again from the outbox, the lost one among them")
    dispatch(con, accelerator, made[:1])
    say("3. The first is pushed once more, a duplicate on purpose")


def _work(con: sqlite3.Connection, accelerator: Accelerator, say: Say) -> Counter[str]:
    deliveries = receive(accelerator, _POP)
    _demand(len(deliveries) == len(_EVENTS) + 1, f"{len(deliveries)} deliveries came, not 4")
    effects: Counter[str] = Counter()

    def effect(_con: sqlite3.Connection, each: Record) -> None:
        effects[each["id"]] += 1

    ignored = [apply(con, each, effect) for each in deliveries].count(False)
    _demand(ignored == 1, f"{ignored} duplicates were ignored, not 1")
    say(f"4. Four deliveries are applied: {effects.total()} effects, {ignored} duplicate ignored")
    return effects


def _verify(con: sqlite3.Connection, made: list[Record], effects: Counter[str]) -> None:
    processed = [each["id"] for each in made if _state(con, each) == "processed"]
    _demand(len(processed) == len(made), f"{len(processed)} of 3 records are processed")
    told = [delivered(con, each["id"]) == each["payload_json"] for each in made]
    _demand(all(told), f"{told.count(True)} of 3 effects are in the database")
    _demand(effects == Counter(processed), f"the effects were {dict(effects)}, not one a record")


def _state(con: sqlite3.Connection, each: Record) -> str | None:
    found = find(con, each["id"])
    return found[1] if found else None


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise DemoError(otherwise)
