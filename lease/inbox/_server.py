"""Serve the receiver on a socket of its own until it is told to stop."""

import asyncio
import errno
import ipaddress
import logging
import math
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

import uvicorn

from lease import checks
from lease.clock import wall_ms
from lease.db.connection import StrPath
from lease.inbox._accept import Effect
from lease.inbox._accept_event import EventEffect
from lease.inbox._app import BODY_S, MAX_BODY, MAX_EVENT_BODY, TURN_S, create_app
from lease.inbox._open import open_inbox, require_writable
from lease.inbox._protocol import PatientProtocol
from lease.model import Clock

_LOG = logging.getLogger(__name__)

# Well below the usual limit of 1024 open files. Those beyond are told to come again, and
# those far beyond are told nothing.
_MAX_CONNECTIONS = 500
_MOST_CONNECTIONS = 600

# Without descriptors asyncio reports as many failures at once as may wait to be accepted.
_BACKLOG = 100

# The application's own answer to a slow body comes first.
_GRACE_S = 1.0

OnReady = Callable[[str], object]


def serve(
    path: StrPath,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    on_ready: OnReady | None = None,
    effect: Effect | None = None,
    event_effect: EventEffect | None = None,
    clock: Clock = wall_ms,
    max_body: int = MAX_BODY,
    max_event_body: int = MAX_EVENT_BODY,
    body_s: float = BODY_S,
    turn_s: float = TURN_S,
) -> None:
    """Accept events over HTTP until SIGTERM or SIGINT, then finish the requests in hand.

    Anybody who can reach the socket can send events: there is no authentication. In a thread
    other than the main one no signal reaches it, and it runs until the process ends.

    Args:
        path: the inbox file; created if missing.
        host: address to listen on; loopback keeps other machines out.
        port: port to listen on, 0-65535; 0 takes a free one.
        on_ready: called with the URL once requests are answered; an error that it raises ends
            the server.
        effect, event_effect, clock, max_body, max_event_body, body_s, turn_s: as for
            `create_app`.

    Raises:
        ValueError: an argument is not of its exact type or out of range.
        OSError: the address cannot be listened on.
        UnusableFile: the file cannot serve as an inbox.
        sqlite3.Error: the file cannot be opened, is locked for too long, or is no database.
    """
    checks.integer("port", port, 0, 65535)
    app = create_app(
        path,
        effect=effect,
        event_effect=event_effect,
        clock=clock,
        max_body=max_body,
        max_event_body=max_event_body,
        body_s=body_s,
        turn_s=turn_s,
    )
    server = _Server(
        uvicorn.Config(
            app,
            http=_protocol(body_s),
            loop="asyncio",
            ws="none",
            lifespan="on",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=_MAX_CONNECTIONS,
            backlog=_BACKLOG,
            timeout_graceful_shutdown=math.ceil(turn_s + _GRACE_S),
        ),
        on_ready,
    )
    # The socket comes before the file: an address that is taken must not leave one behind.
    with _stopped_by_signals(server), closing(_listen(host, port)) as listener:
        # What is wrong with the file is to come out of here as it is.
        open_inbox(path).close()
        require_writable(path)
        server.run([listener])
    if server.failure is not None:
        raise server.failure


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: OnReady | None) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self.failure: BaseException | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._on_ready is None or not sockets:
            return
        try:
            self._on_ready(_url(sockets[0]))
        except BaseException as error:  # noqa: BLE001  (raised again once all is closed)
            self.failure = error
            self.should_exit = True


def _protocol(body_s: float) -> type[asyncio.Protocol]:
    class Protocol(PatientProtocol):
        patience_s = body_s + _GRACE_S
        most_connections = _MOST_CONNECTIONS

    return Protocol


def _listen(host: str, port: int) -> socket.socket:
    with ExitStack() as undo:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            # With its protocol: only then does asyncio switch off the delay of small writes.
            family, kind, protocol, _, address = found[0]
            listener = undo.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", "the name cannot be one")
            raise OSError(
                getattr(error, "errno", errno.EINVAL),
                f"cannot listen on {host} port {port}: {why}; choose another",
            ) from error
        undo.pop_all()
    bound = listener.getsockname()[0]
    if not ipaddress.ip_address(bound).is_loopback:
        _LOG.warning("listening on %s, where other machines can send events", bound)
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Make a stop by signal an ordinary return.

    uvicorn raises the signal again once it has stopped, which would end the process as if it
    had been killed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
