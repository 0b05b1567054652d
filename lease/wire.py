"""The JSON of events, written in one way and read so strictly that no two readers read it apart."""

import json
from collections.abc import Callable
from math import isfinite
from typing import NoReturn

from lease import checks
from lease.limits import MAX_PAYLOAD_BYTES, MAX_QTY
from lease.model import RecordedEvent

# No number of ours has more digits; far longer ones cost more to read than to refuse.
_MAX_DIGITS = 32

# Far below what any part of the way can take, wherever in its stack it reads or writes.
_MAX_DEPTH = 256

# Beyond these bits a number is described, not quoted.
_WIDE = 64

_WORDS = {dict: "an object", list: "an array", type(None): "null"}

# What each field of an event must be, in the words of who has written JSON or CSV.
_FIELDS: dict[str, tuple[Callable[[object], object], str]] = {
    "id": (
        lambda value: checks.identifier("id", value),
        "a string of 1-64 ASCII letters, digits, '_' or '-'",
    ),
    "qty": (
        lambda value: checks.integer("qty", value, 1, MAX_QTY),
        f"a whole number from 1 to {MAX_QTY}",
    ),
    "event_type": (
        checks.event_type,
        "a string of 1-128 ASCII letters, digits, '.', '_', ':', '/' or '-'",
    ),
}


def parse(text: bytes) -> object:
    """Return the value that a JSON text holds.

    Args:
        text: UTF-8 without a byte order mark; the caller bounds its length.

    Raises:
        ValueError: it is no UTF-8 or no JSON, an object has a key twice, a number is not
            finite or too long, or it is nested too deeply; in one line that quotes none of it.
    """
    try:
        return json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_finite,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"the text is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        where = f"at character {error.pos + 1}"
        raise ValueError(f"the text is not JSON: {error.msg} {where}") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def event(document: object) -> tuple[str, int]:
    """Return the id and quantity of a parsed event.

    Raises:
        ValueError: it is none, in the words of JSON.
    """
    try:
        return checks.event(document)
    except ValueError:
        raise ValueError(_problem(document, ("id", "qty"))) from None


def recorded_event(document: object) -> RecordedEvent:
    """Return a copy of a parsed event of an outbox; the payload is not looked at.

    Raises:
        ValueError: it is none, in the words of JSON.
    """
    try:
        return checks.recorded_event(document)
    except ValueError:
        raise ValueError(_problem(document, ("id", "event_type", "payload"))) from None


def wanted(name: str, field: str, value: object) -> str:
    """Say what a refused value under a name ought to be, as a field of an event."""
    return f"{name} must be {_FIELDS[field][1]}, not {shown(value)}"


def shown(value: object) -> str:
    """Describe a refused value to whoever has written it as JSON."""
    if type(value) is bool:
        return str(value).lower()
    if type(value) is int and value.bit_length() > _WIDE:
        return f"a number of {len(str(abs(value)))} digits"
    return _WORDS.get(type(value)) or checks.shown(value)


def canonical(payload: object) -> str:
    """Return a payload as JSON text, the same for equal content: sorted keys and no spaces.

    A dict with other keys than str, a tuple, NaN or a subclass would come back as something
    else than it went in, and is refused; so is what `parse` would refuse.

    Raises:
        ValueError: the payload is not what a JSON document can hold, or too long.
    """
    try:
        _require_plain(payload, _MAX_DEPTH)
        text = json.dumps(
            payload, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
        )
        encoded = text.encode()
        parse(encoded)
    except ValueError as error:
        raise ValueError(f"payload must be JSON: {error}") from None
    if len(encoded) > MAX_PAYLOAD_BYTES:
        raise ValueError(
            f"payload must be at most {MAX_PAYLOAD_BYTES} bytes of JSON, not {len(encoded)}"
        )
    return text


def _problem(document: object, fields: tuple[str, ...]) -> str:
    if type(document) is not dict or document.keys() != set(fields):
        names = f"{', '.join(fields[:-1])} and {fields[-1]}"
        return (
            f"event must be an object of just {names}, not {checks.unlike(document, fields, shown)}"
        )
    name = next(name for name in fields if not _is_good(name, document[name]))
    return wanted(name, name, document[name])


def _is_good(name: str, value: object) -> bool:
    try:
        _FIELDS[name][0](value)
    except ValueError:
        return False
    return True


def _require_plain(value: object, depth: int) -> None:
    if depth == 0 and type(value) in (dict, list):
        raise ValueError(f"it is nested over {_MAX_DEPTH} deep, or contains itself")
    if type(value) is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise ValueError(f"a key is {checks.shown(key)}, not a str")
            _require_plain(item, depth - 1)
    elif type(value) is list:
        for item in value:
            _require_plain(item, depth - 1)
    elif type(value) not in (str, int, float, bool, type(None)):
        raise ValueError(f"it holds {checks.shown(value)}")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("the JSON has a key twice in one object")
    return found


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"the JSON has a number of {len(digits)} digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError("the JSON has a number that is not finite")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
