"""The one thread that owns a receiver's connection; it accepts events one at a time."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lease.db.connection import StrPath
from lease.inbox._accept import Effect, accept
from lease.inbox._accept_event import EventEffect, accept_event
from lease.inbox._open import open_inbox
from lease.model import Clock, Event, RecordedEvent

_Result = TypeVar("_Result")


class Writer:
    """Accepts events on an inbox file from a thread of its own.

    SQLite has one writer at a time anyway; a line before one connection is fairer than many
    connections that contend for the lock.

    Args:
        path: the inbox file; created if missing.
        clock: returns the present in milliseconds.
        effect: as for `accept`.
        event_effect: as for `accept_event`.
    """

    def __init__(
        self,
        path: StrPath,
        clock: Clock,
        effect: Effect | None,
        event_effect: EventEffect | None,
    ) -> None:
        self._path = path
        self._clock = clock
        self._effect = effect
        self._event_effect = event_effect
        self._thread = _one_thread()
        self._con: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Open the inbox now rather than with the first event."""
        await self._run(self._opened)

    async def accept(self, event: Event) -> bool:
        """Accept an event when its turn comes; nothing happens if cancelled before."""
        return await self._run(lambda: self._accept(event))

    async def accept_event(self, event: RecordedEvent) -> bool:
        """Accept an outbox's event, likewise."""
        return await self._run(lambda: self._accept_event(event))

    async def close(self) -> None:
        """Close the inbox, after the event in hand; it may be opened again."""
        await self._run(self._close)
        self._thread.shutdown()
        self._thread = _one_thread()

    async def _run(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _opened(self) -> sqlite3.Connection:
        if self._con is None:
            self._con = open_inbox(self._path)
        return self._con

    def _accept(self, event: Event) -> bool:
        return accept(self._opened(), event, self._clock(), self._effect)

    def _accept_event(self, event: RecordedEvent) -> bool:
        return accept_event(self._opened(), event, self._clock(), self._event_effect)

    def _close(self) -> None:
        self._opened().close()
        self._con = None


def _one_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="lease-inbox")
