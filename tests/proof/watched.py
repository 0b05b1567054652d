"""A connection that tells of each statement before and after it, so that a test may end there."""

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any, Literal

When = Literal["before", "after"]

#: Told when, and the text of the statement.
Watcher = Callable[[When, str], None]


class WatchedCursor(sqlite3.Cursor):
    """A cursor whose statements its connection's watcher hears of."""

    connection: "WatchedConnection"

    def execute(self, sql: str, parameters: Any = (), /) -> "WatchedCursor":
        """Run one statement between the watcher's two calls."""
        watcher = self.connection.watcher
        if watcher is None:
            super().execute(sql, parameters)
            return self
        watcher("before", sql)
        super().execute(sql, parameters)
        watcher("after", sql)
        return self

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> "WatchedCursor":
        """Run one statement many times between the watcher's two calls."""
        watcher = self.connection.watcher
        if watcher is not None:
            watcher("before", sql)
        super().executemany(sql, parameters)
        if watcher is not None:
            watcher("after", sql)
        return self


class WatchedConnection(sqlite3.Connection):
    """A connection whose statements are told to `watcher`; what that raises comes out here."""

    watcher: Watcher | None = None

    def cursor(self, factory: Any = WatchedCursor) -> Any:
        """Return a cursor that the watcher hears of."""
        return super().cursor(factory)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Run one statement on a cursor that the watcher hears of."""
        return self.cursor().execute(sql, parameters)  # type: ignore[no-any-return]  # cursor() is Any in the stubs of a subclass
