"""Send one event as one HTTP request, and read the answer as the outcome of the attempt."""

import json
import os
import ssl
from base64 import b64encode
from http import HTTPStatus
from types import TracebackType
from typing import Self
from urllib.parse import SplitResult, unquote

import httpcore

from lease import checks, wire
from lease.delivery._network import Deadline, DeadlineBackend
from lease.delivery._reason import reason
from lease.errors import Permanent, Retryable
from lease.model import Event

# Receivers close idle connections, many after five seconds; one in use by then fails the send.
_IDLE_S = 3.0

# An acknowledgement is short; more is read of no answer.
_MAX_ANSWER = 64 * 1024
_QUOTED = 40

_RETRYABLE_4XX = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
)

_SUCCESS = range(200, 300)
_REDIRECT = range(300, 400)
_CLIENT_ERROR = range(400, 500)

_FAILURES = (httpcore.NetworkError, httpcore.ProtocolError)


class HttpSender:
    """A `Send` that posts `{"id": ..., "qty": ...}` to a URL; use it in a `with` statement.

    One sender serves any number of threads, and keeps connections open between sends. The
    request bears the id as `Idempotency-Key` too. No proxy of the environment is used.

    - 2xx with a JSON object whose `accepted` is true: returns True.
    - 2xx with anything else: returns a description, which is not True, hence a `BadAck`.
    - 408, 425, 429, 5xx, no connection, no answer in time, an answer that is no HTTP: raises
      `Retryable`. So does 3xx: redirects are not followed, and a wrong URL, which is nobody's
      job's fault, leaves time to correct it.
    - Any other 4xx: raises `Permanent`.

    Args:
        url: where to post, `http` or `https`; a user and password in it are sent as Basic
            authentication and appear in no message.
        timeout_s: longest time for a whole send, seconds above 0 up to a day. Keep it below the
            lease. Only the system's look-up of the host's name may outlast it.

    Raises:
        ValueError: an argument is not of its exact type, not a URL, or out of range.
    """

    def __init__(self, url: str, *, timeout_s: float = 10) -> None:
        parts = checks.url("url", url)
        self._timeout_s = checks.seconds("timeout_s", timeout_s)
        host = parts.netloc.rpartition("@")[2]
        self._shown = f"{parts.scheme}://{host}{parts.path}"
        self._url = httpcore.URL(
            scheme=parts.scheme.encode(),
            host=(parts.hostname or "").encode(),
            port=parts.port,
            target=((parts.path or "/") + (parts.query and f"?{parts.query}")).encode(),
        )
        self._headers: dict[bytes | str, bytes | str] = {
            "Host": host,
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": "lease-queue",
            **_authorization(parts),
        }
        self._deadline = Deadline()
        self._pool = httpcore.ConnectionPool(
            # Loading the system's certificates is dear, and plain HTTP has no use for them.
            ssl_context=ssl.create_default_context() if parts.scheme == "https" else None,
            # A thread has one request in hand: their number is the bound.
            max_connections=None,
            keepalive_expiry=_IDLE_S,
            network_backend=DeadlineBackend(self._deadline),
        )
        self._process = os.getpid()

    def __call__(self, event: Event) -> object:
        """Send an event once.

        Args:
            event: exactly `id` and `qty`; never changed.

        Returns:
            True if the receiver has accepted it, and otherwise a description of the answer.

        Raises:
            ValueError: the event is not of its exact type or out of range.
            Retryable: a later attempt may succeed; the event may have been accepted.
            Permanent: no later attempt can succeed.
            RuntimeError: called in a forked child, whose connections are its parent's.
        """
        event_id, qty = checks.event(event)
        return self.post(event_id, {"id": event_id, "qty": qty})

    def post(self, key: str, document: object) -> object:
        """Send any JSON document once, and judge the answer as that to an event.

        Args:
            key: identifier of the document, sent as its `Idempotency-Key`.
            document: what `json.dumps` takes; never changed.

        Returns:
            True if the receiver has accepted it, and otherwise a description of the answer.

        Raises:
            ValueError: the key is no identifier.
            Retryable, Permanent, RuntimeError: as for a call.
        """
        checks.identifier("key", key)
        if os.getpid() != self._process:
            raise RuntimeError("this sender was made before a fork; make one in each process")
        self._deadline.start(self._timeout_s)
        try:
            with self._pool.stream(
                "POST",
                self._url,
                headers={**self._headers, "Idempotency-Key": key},
                content=json.dumps(document).encode(),
            ) as response:
                return self._judge(response)
        except httpcore.TimeoutException as error:
            raise Retryable(f"{self._shown} gave no answer in {self._timeout_s:g} s") from error
        except _FAILURES as error:
            raise Retryable(f"{self._shown} failed: {reason(error)}") from error

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _judge(self, response: httpcore.Response) -> object:
        status = response.status
        if status in _SUCCESS:
            body = _read(response)
            return _is_ack(body) or _described(status, body)
        answer = f"{self._shown} answered {status}"
        if status in _REDIRECT:
            raise Retryable(f"{answer}; redirects are not followed, so correct the URL")
        answer += _explanation(response)
        if status in _CLIENT_ERROR and status not in _RETRYABLE_4XX:
            raise Permanent(answer)
        raise Retryable(answer)


def _authorization(parts: SplitResult) -> dict[bytes | str, bytes | str]:
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def _read(response: httpcore.Response) -> bytes:
    """Return the body as it came; of one over the limit little more than the limit."""
    body = bytearray()
    for chunk in response.iter_stream():
        body += chunk
        if len(body) > _MAX_ANSWER:
            break
    return bytes(body)


def _is_ack(body: bytes) -> bool:
    answer = _object(body)
    return answer is not None and answer.get("accepted") is True


def _described(status: int, body: bytes) -> str:
    if len(body) > _MAX_ANSWER:
        return f"HTTP {status} with a body over {_MAX_ANSWER} bytes"
    return f"HTTP {status} with {body[:_QUOTED].decode(errors='replace')!r}"


def _explanation(response: httpcore.Response) -> str:
    """Return what the receiver gives as its error; the status stands without it."""
    try:
        answer = _object(_read(response))
    except (*_FAILURES, httpcore.TimeoutException):
        return ""
    error = answer and answer.get("error")
    return f": {checks.shown(error)}" if type(error) is str else ""


def _object(body: bytes) -> dict[str, object] | None:
    if len(body) > _MAX_ANSWER:
        return None
    try:
        answer = wire.parse(body)
    except ValueError:
        return None
    return answer if type(answer) is dict else None
