"""Exact-type validation of events and records; raises ValueError before anything changes."""

import json
import re

from lease import wire
from lease.checks import identifier, integer, shown
from lease.outbox.model import Record

# A larger document belongs in a place of its own, with its address in the event.
MAX_PAYLOAD_BYTES = 1_048_576

_EVENT_TYPE = re.compile(r"[A-Za-z0-9._:/-]{1,128}")
_TEXTS = ("id", "event_type", "payload_json")


def event_type(value: object) -> str:
    """Return `value` if it is an exact str of 1-128 ASCII letters, digits and `._:/-`."""
    if type(value) is str and _EVENT_TYPE.fullmatch(value):
        return value
    raise ValueError(
        f"event_type must be a str of 1-128 ASCII letters, digits, '.', '_', ':', '/' or '-', "
        f"not {shown(value)}"
    )


def canonical(payload: object) -> str:
    """Return the payload as JSON text, the same for equal content: sorted keys and no spaces.

    A dict with other keys than str, a tuple, NaN or a subclass would come back as something
    else than it went in, and is refused.
    """
    try:
        _plain(payload)
        text = json.dumps(
            payload, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
        )
        encoded = text.encode()
        # Whoever receives it reads it strictly; what they would refuse is refused here.
        wire.parse(encoded)
    except RecursionError:
        raise ValueError("payload must not be nested this deeply or contain itself") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"payload must be JSON: {error}") from None
    if len(encoded) > MAX_PAYLOAD_BYTES:
        raise ValueError(
            f"payload must be at most {MAX_PAYLOAD_BYTES} bytes of JSON, not {len(encoded)}"
        )
    return text


def record(value: object) -> Record:
    """Return a private copy of a record; a dict may hold more than its three texts."""
    if type(value) is not dict or any(type(value.get(key)) is not str for key in _TEXTS):
        raise ValueError(
            f"a record must be a dict with the texts id, event_type and payload_json, "
            f"not {shown(value)}"
        )
    return Record(
        id=identifier("record id", value["id"]),
        event_type=event_type(value["event_type"]),
        payload_json=value["payload_json"],
    )


def rows(name: str, value: object) -> int:
    """Return `value` if it is an exact int that can limit a list."""
    return integer(name, value, 1, 2**31 - 1)


def _plain(value: object) -> None:
    if type(value) is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise TypeError(f"a key is {shown(key)}, not a str")
            _plain(item)
    elif type(value) is list:
        for item in value:
            _plain(item)
    elif type(value) not in (str, int, float, bool, type(None)):
        raise TypeError(f"it holds {shown(value)}")
