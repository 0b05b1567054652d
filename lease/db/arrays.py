"""Hand a set of values to a statement as one parameter."""

from collections.abc import Iterable

Item = str | int


def array(items: Iterable[Item | tuple[Item, ...]]) -> str:
    """Return a JSON array for `json_each`; a tuple becomes an array within."""
    # Imported with the first set: `import lease` does without.
    from json import dumps

    return dumps(list(items), separators=(",", ":"))
