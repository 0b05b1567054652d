"""The shapes of the outbox; plain dicts and callables at run time."""

import sqlite3
from collections.abc import Callable
from typing import TypedDict

#: The most copies that one pop of an accelerator may ask for.
MAX_POP = 10_000


class Record(TypedDict):
    """One recorded event; also what travels through an accelerator, where it is only a hint."""

    id: str
    event_type: str
    payload_json: str


#: Makes a record's effect on the given connection, inside the transaction that it finds open.
Effect = Callable[[sqlite3.Connection, Record], object]
