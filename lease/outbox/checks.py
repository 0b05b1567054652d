"""Exact-type validation of records; raises ValueError before anything changes."""

from lease.checks import event_type, identifier, integer, shown
from lease.outbox.model import Record

_TEXTS = ("id", "event_type", "payload_json")


def record(value: object) -> Record:
    """Return a private copy of a record; a dict may hold more than its three texts."""
    if type(value) is not dict or any(type(value.get(key)) is not str for key in _TEXTS):
        raise ValueError(
            f"a record must be a dict with the texts id, event_type and payload_json, "
            f"not {_unlike(value)}"
        )
    return Record(
        id=identifier("record id", value["id"]),
        event_type=event_type(value["event_type"]),
        payload_json=value["payload_json"],
    )


def _unlike(value: object) -> str:
    if type(value) is not dict:
        return shown(value)
    name = next(key for key in _TEXTS if type(value.get(key)) is not str)
    return f"one whose {name} is {shown(value[name])}" if name in value else f"one without {name}"


def rows(name: str, value: object) -> int:
    """Return `value` if it is an exact int that can limit a list."""
    return integer(name, value, 1, 2**31 - 1)
