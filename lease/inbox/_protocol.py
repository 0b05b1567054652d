"""Bounds on what a client may do before its request is there, which the server itself lacks."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientProtocol(H11Protocol):
    """Closes a connection whose request does not arrive in time, and one that is too many.

    The server bounds only the pause between two requests: a client that sends a byte now and
    then, or none at all, would hold its connection for ever. And it counts the requests, not
    the connections: those that ask for nothing would take every descriptor of the process.
    """

    #: Seconds for a header, and for a body. The application answers a slow body earlier.
    patience_s: float = 10

    #: Connections at a time; a further one is cut without an answer.
    most_connections: int = 600

    _waits_for: object = None
    _alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Give the first header its time."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            transport.abort()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        super().connection_lost(exc)
        self._stop()

    def handle_events(self) -> None:
        """Give each part of a request its time, in however many pieces it comes."""
        super().handle_events()
        self._watch()

    def shutdown(self) -> None:
        """Hang up on a client that is still sending; nothing was accepted of it."""
        if self.conn.their_state is h11.SEND_BODY:
            self.transport.close()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, in place of the application, which may be about to."""
        super().send_400_response(msg)
        if self.cycle is not None:
            self.cycle.disconnected = True

    def _watch(self) -> None:
        if self.conn.their_state is self._waits_for:
            return
        self._stop()
        self._waits_for = self.conn.their_state
        if self._waits_for in (h11.IDLE, h11.SEND_BODY):
            self._alarm = self.loop.call_later(self.patience_s, self.transport.close)

    def _stop(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
