"""The copy of a record that travels through an accelerator: a hint, never the truth."""

import json

from lease import wire
from lease.outbox import checks
from lease.outbox.model import Record


def encode(record: Record) -> bytes:
    """Return a record as compact JSON with sorted keys."""
    text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode()


def decode(item: bytes) -> Record:
    """Return the record in a popped item.

    Raises:
        ValueError: the item is no JSON object with a record's three texts.
    """
    return checks.record(wire.parse(item))
