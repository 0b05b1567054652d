"""The JSON that comes in from outside, read so strictly that no two readers can read it apart."""

import json
from typing import NoReturn

# No number of ours has more digits; far longer ones cost more to read than to refuse.
_MAX_DIGITS = 32


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
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"the text is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the text is not JSON: {error}") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("the JSON has a key twice in one object")
    return found


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"the JSON has a number of {len(digits)} digits")
    return int(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
