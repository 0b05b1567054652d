"""Both ends of a delivery: the real receiver as a process, and servers that misbehave."""

import asyncio
import json
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

import httpx
from starlette.applications import Starlette

from lease.inbox.http import serve
from lease.model import Event
from tests.support.processes import DEADLINE_S, ROOT, environment

Rows = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]


def rows(path: Path) -> Rows:
    """Return what a connection of its own sees: (id, qty, requests) and (id, qty)."""
    with closing(sqlite3.connect(path)) as con:
        return (
            con.execute("SELECT id, qty, requests FROM inbox ORDER BY first_ms, id").fetchall(),
            con.execute("SELECT id, qty FROM effects ORDER BY seq").fetchall(),
        )


def ask(app: Starlette, *requests: dict[str, Any], raising: bool = False) -> list[httpx.Response]:
    """Send requests one after the other to an application, started and stopped around them.

    `raising` lets out what the application raises on for its server to log.
    """

    async def converse() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app, raise_app_exceptions=raising)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://receiver") as client,
        ):
            return [await client.request(**request) for request in requests]

    return asyncio.run(converse())


def post(content: Any, path: str = "/", **headers: str) -> dict[str, Any]:
    """Return a request of `ask`: bytes or chunks as they are, anything else as JSON."""
    if isinstance(content, dict | list | int | float | str | None):
        content = json.dumps(content).encode()
    return {
        "method": "POST",
        "url": path,
        "content": content,
        "headers": {"Content-Type": "application/json"} | headers,
    }


class Receiver:
    """`serve` in a process of its own; `options` are its arguments, `effect` one of EFFECTS.

    With `descriptors` it may have no more than so many open.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.http", str(path), json.dumps(options)],
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.url = self.heard()

    def heard(self) -> str:
        """Wait for the next line that it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    @property
    def address(self) -> tuple[str, int]:
        """Return where it listens."""
        url = httpx.URL(self.url)
        return url.host, url.port or 80

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal and wait for the end; return the exit code and what it logged."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and what it logged."""
        _, logged = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, logged

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=DEADLINE_S)


def speak(address: tuple[str, int], *parts: bytes) -> bytes:
    """Send raw bytes, part by part, and return all that comes back until the other side closes."""
    with socket.create_connection(address, timeout=DEADLINE_S) as sock:
        for part in parts:
            sock.sendall(part)
        return _heard(sock)


def _heard(sock: socket.socket) -> bytes:
    heard = bytearray()
    try:
        while data := sock.recv(65536):
            heard += data
    except ConnectionResetError:
        pass
    return bytes(heard)


Handler = Callable[[socket.socket], object]


@contextmanager
def server(*handlers: Handler) -> Iterator[str]:
    """Run a server whose first connection the first handler answers, and so on; yield its URL.

    An error of a handler comes out here, as does a connection that was not made.
    """
    failures: list[BaseException] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(DEADLINE_S)

        def run() -> None:
            try:
                for handler in handlers:
                    sock, _ = listener.accept()
                    with sock:
                        sock.settimeout(DEADLINE_S)
                        handler(sock)
            except BaseException as error:  # noqa: BLE001  (raised where it is seen)
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        host, port = listener.getsockname()
        try:
            yield f"http://{host}:{port}/"
        finally:
            thread.join(DEADLINE_S)
    for failure in failures:
        raise failure


def request_of(sock: socket.socket) -> bytes:
    """Read one request with a declared body, to its end."""
    heard = b""
    while b"\r\n\r\n" not in heard:
        heard += sock.recv(65536)
    head, _, body = heard.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    (length,) = [int(line.split(":")[1]) for line in lines if line.startswith("content-length:")]
    while len(body) < length:
        body += sock.recv(65536)
    return head + b"\r\n\r\n" + body


def answer(status: str, body: bytes, *headers: str) -> bytes:
    """Return a whole response."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(head).encode() + body


def answering(*parts: bytes) -> Handler:
    """Return a handler that reads a request and sends the parts, then closes."""

    def handle(sock: socket.socket) -> None:
        request_of(sock)
        for part in parts:
            sock.sendall(part)

    return handle


def _kill(con: sqlite3.Connection, event: Event) -> None:
    if event["id"] == "deadly":
        con.execute("INSERT INTO effects (id, qty, at_ms) VALUES (:id, :qty, 0)", event)
        os.kill(os.getpid(), signal.SIGKILL)


def _fail(_con: sqlite3.Connection, event: Event) -> None:
    raise RuntimeError(f"no room for {event['id']}")


def _wait(con: sqlite3.Connection, _event: Event) -> None:
    print("in hand", flush=True)  # noqa: T201  (to the parent)
    (_, _, name) = con.execute("PRAGMA database_list").fetchone()
    while not Path(f"{name}.go").exists():
        time.sleep(0.01)


EFFECTS = {"kill": _kill, "fail": _fail, "wait": _wait}


def _main(path: str, options: str) -> None:
    given = json.loads(options)
    given["effect"] = EFFECTS.get(given.get("effect"))
    descriptors = given.pop("descriptors", None)
    if descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    serve(path, on_ready=lambda url: print(url, flush=True), **given)  # noqa: T201  (to the parent)


if __name__ == "__main__":
    _main(*sys.argv[1:])
