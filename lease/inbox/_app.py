"""The receiver as an ASGI application: one event a request, refused before it is read in full."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lease import checks, wire
from lease.clock import wall_ms
from lease.db.connection import StrPath
from lease.db.locked import is_locked
from lease.errors import Conflict
from lease.inbox._accept import Effect
from lease.inbox._accept_event import EventEffect
from lease.inbox._room import Place, Room
from lease.inbox._writer import Writer
from lease.limits import MAX_PAYLOAD_BYTES
from lease.model import Clock, Event, RecordedEvent

MAX_BODY = 16 * 1024

# A sender may write a character of two bytes as an escape of six.
MAX_EVENT_BODY = 4 * MAX_PAYLOAD_BYTES

# What bodies may take until they are answered, all of them together; read, they take far more.
_ROOM = 4 * MAX_EVENT_BODY

# A client may take so long to send a body, and an event to get its turn at the database.
BODY_S = 10.0
TURN_S = 5.0

_RETRY_AFTER = {"Retry-After": "1"}
_CLOSE = {"Connection": "close"}
_BUSY = _RETRY_AFTER | _CLOSE
_UTF_8 = ("", "charset=utf-8", 'charset="utf-8"')


def create_app(
    path: StrPath,
    *,
    effect: Effect | None = None,
    event_effect: EventEffect | None = None,
    clock: Clock = wall_ms,
    max_body: int = MAX_BODY,
    max_event_body: int = MAX_EVENT_BODY,
    body_s: float = BODY_S,
    turn_s: float = TURN_S,
) -> Starlette:
    """Return an application that accepts events into an inbox file.

    `POST /` takes the JSON object `{"id": ..., "qty": ...}` and answers 200 with
    `{"accepted": true, "repeat": false}`, or with `"repeat": true` if the effect was made by
    an earlier delivery. Every other answer is `{"error": ...}` and changes nothing: 400 for
    what is no JSON, 403 for what a web page sends, 408 for a body that is too slow, 409 for an
    id that was accepted with another quantity, 413 for a body over the limit, 415 for another
    content type, 422 for JSON that is no event, 503 for a database that is locked or busy and
    for more at once than there is room for, 500 for anything unforeseen, which is raised on for
    the server to log. `GET /health` answers 200.

    `POST /events` takes what an outbox delivers, the JSON object `{"id": ..., "event_type": ...,
    "payload": ...}`, in the same way; there the content is type and payload.

    Args:
        path: the inbox file; created if missing.
        effect: as for `accept`; it is called in a thread of its own, the same each time.
        event_effect: as for `accept_event`; likewise.
        clock: returns the present in milliseconds.
        max_body: longest body of `POST /`, bytes from 1; no more of it is read.
        max_event_body: longest body of `POST /events`, bytes from 1.
        body_s: longest time for the body to arrive, seconds above 0.
        turn_s: longest time for an event to be accepted, seconds above 0. After it the client
            is told to come back; the event may still be accepted, and is then a repeat.

    Raises:
        ValueError: an argument is not of its exact type or out of range.
    """
    checks.integer("max_body", max_body, 1, 2**31)
    checks.integer("max_event_body", max_event_body, 1, 2**31)
    checks.seconds("body_s", body_s)
    checks.seconds("turn_s", turn_s)
    writer = Writer(path, clock, effect, event_effect)
    receiver = _Receiver(writer, max_body, max_event_body, body_s, turn_s)
    app = Starlette(
        routes=[
            Route("/", receiver.receive, methods=["POST"]),
            Route("/events", receiver.receive_event, methods=["POST"]),
            Route("/health", _answer_health, methods=["GET"]),
        ],
        exception_handlers={
            HTTPException: _explain,
            ClientDisconnect: _give_up,
            Exception: _apologise,
        },
        lifespan=receiver.lifespan,
    )
    app.router.redirect_slashes = False
    return app


class _Receiver:
    """What the requests of one application share."""

    def __init__(
        self, writer: Writer, max_body: int, max_event_body: int, body_s: float, turn_s: float
    ) -> None:
        self._writer = writer
        self._max_body = max_body
        self._max_event_body = max_event_body
        self._room = Room(max(_ROOM, max_body, max_event_body))
        self._body_s = body_s
        self._turn_s = turn_s

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Hold the inbox open while the server runs."""
        await self._writer.open()
        try:
            yield
        finally:
            await self._writer.close()

    async def receive(self, request: Request) -> Response:
        """Answer one `POST /`."""
        return await self._receive(
            request, self._max_body, lambda body: self._writer.accept(_read_event(body))
        )

    async def receive_event(self, request: Request) -> Response:
        """Answer one `POST /events`."""
        return await self._receive(
            request,
            self._max_event_body,
            lambda body: self._writer.accept_event(_read_recorded_event(body)),
        )

    async def _receive(
        self, request: Request, max_body: int, accept: Callable[[bytes], Awaitable[bool]]
    ) -> Response:
        _refuse_browser(request)
        _require_one_length(request)
        _require_json(request)
        with self._room.place() as place:
            body = await self._read_body(request, max_body, place)
            return await self._answer(accept(body))

    async def _read_body(self, request: Request, max_body: int, place: Place) -> bytes:
        too_long = HTTPException(413, f"the body may have {max_body} bytes", _CLOSE)
        # The server has checked that it is a number; a chunked body declares none.
        if int(request.headers.get("content-length", "0")) > max_body:
            raise too_long
        body = bytearray()
        try:
            async with asyncio.timeout(self._body_s):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > max_body:
                        raise too_long
                    if not place.grow(len(chunk)):
                        raise HTTPException(503, "too much at once; send again", _BUSY)
        except TimeoutError as error:
            raise HTTPException(408, f"the body took over {self._body_s:g} s", _CLOSE) from error
        return bytes(body)

    async def _answer(self, accepted: Awaitable[bool]) -> Response:
        turn = asyncio.timeout(self._turn_s)
        try:
            async with turn:
                first = await accepted
        except Conflict as error:
            raise HTTPException(409, str(error)) from error
        except TimeoutError as error:
            if not turn.expired():
                raise
            raise HTTPException(503, "the inbox is busy; send again", _RETRY_AFTER) from error
        except sqlite3.OperationalError as error:
            if not is_locked(error):
                raise
            raise HTTPException(503, "the inbox is locked; send again", _RETRY_AFTER) from error
        return JSONResponse({"accepted": True, "repeat": not first})


def _refuse_browser(request: Request) -> None:
    """Refuse what a web page sends, by whichever name it has reached this address.

    A browser says whose page it is with each POST; a sender of events has no page.
    """
    if "origin" in request.headers:
        raise HTTPException(403, "web pages may not send events", _CLOSE)


def _require_one_length(request: Request) -> None:
    """Refuse a body of two lengths, whose end a proxy before this server may see elsewhere."""
    if "transfer-encoding" in request.headers and "content-length" in request.headers:
        raise HTTPException(400, "the body must have one length, not two", _CLOSE)


def _require_json(request: Request) -> None:
    kind, _, parameters = request.headers.get("content-type", "").lower().partition(";")
    if kind.strip() != "application/json" or parameters.replace(" ", "") not in _UTF_8:
        raise HTTPException(415, "the content type must be application/json, in UTF-8")


def _read_event(body: bytes) -> Event:
    value = _parse(body)
    try:
        event_id, qty = wire.event(value)
    except ValueError as error:
        raise HTTPException(422, str(error)) from error
    return Event(id=event_id, qty=qty)


def _read_recorded_event(body: bytes) -> RecordedEvent:
    value = _parse(body)
    try:
        event = wire.recorded_event(value)
        wire.canonical(event["payload"])
    except ValueError as error:
        raise HTTPException(422, str(error)) from error
    return event


def _parse(body: bytes) -> object:
    try:
        return wire.parse(body)
    except ValueError as error:
        raise HTTPException(400, str(error)) from error


async def _answer_health(_request: Request) -> Response:
    return JSONResponse({"ok": True})


async def _explain(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  (what it is registered for)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _give_up(_request: Request, _error: Exception) -> Response:
    # Nobody is there to read it; without it the server would log a failure of ours.
    return Response(status_code=400)


async def _apologise(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"error": "the receiver failed; its log says why"}, 500)
