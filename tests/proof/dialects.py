"""The databases that the queue runs on, each of which must pass every test of this folder."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager

from tests.proof.store import Store


@contextmanager
def _sqlite() -> Iterator[sqlite3.Connection]:
    with closing(Store()) as store:
        yield store.con


#: Makes a connection to a new queue, by the name of the dialect.
DIALECTS: dict[str, Callable[[], AbstractContextManager[sqlite3.Connection]]] = {
    "sqlite": _sqlite,
}
