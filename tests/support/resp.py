"""A strict RESP2 server: Spedo's four commands, a log of what came, and misbehaviour on demand.

It takes nothing but arrays of bulk strings, and each command in one form alone; whatever else a
client sends is answered with an error and shows in the log.
"""

import socket
import threading
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple

Words = list[bytes]


class Fault(NamedTuple):
    """What the server does in place of a proper answer.

    `reply` is sent as it is; then it goes on (`stay`), ends the connection (`close`) or says
    nothing more (`hang`). With `perform` the command takes effect first.
    """

    reply: bytes
    then: str = "stay"
    perform: bool = False


class Malformed(Exception):
    """The client sent no array of bulk strings."""


class Ended(Exception):
    """The other side closed the connection."""


class Stream:
    """Reads lines and counted bytes from a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._file = sock.makefile("rb")

    def line(self) -> bytes:
        """Return a line without its end, which must be CR LF."""
        line = self._file.readline(70_000)
        if not line:
            raise Ended
        if not line.endswith(b"\r\n"):
            raise Malformed(line)
        return line[:-2]

    def exactly(self, size: int) -> bytes:
        """Return so many bytes."""
        data = self._file.read(size)
        if len(data) != size:
            raise Ended
        return data

    def command(self) -> tuple[Words, bytes]:
        """Return one command's words, and the bytes that it came in."""
        raw = head = self.line()
        if not head.startswith(b"*") or not head[1:].isdigit():
            raise Malformed(head)
        raw += b"\r\n"
        words = []
        for _ in range(int(head[1:])):
            size = self.line()
            if not size.startswith(b"$") or not size[1:].isdigit():
                raise Malformed(size)
            word = self.exactly(int(size[1:]))
            if self.exactly(2) != b"\r\n":
                raise Malformed(word)
            words.append(word)
            raw += size + b"\r\n" + word + b"\r\n"
        return words, raw

    def reply(self) -> bytes:
        """Return one reply as the bytes that it came in."""
        head = self.line()
        raw = head + b"\r\n"
        if head[:1] == b"$" and head != b"$-1":
            raw += self.exactly(int(head[1:]) + 2)
        if head[:1] == b"*" and head != b"*-1":
            raw += b"".join(self.reply() for _ in range(int(head[1:])))
        return raw

    def close(self) -> None:
        """Close the file; the socket is its owner's."""
        self._file.close()


class Listener(ABC):
    """Accepts connections on loopback and serves each in a thread; a context manager."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.stopping = threading.Event()

    def __enter__(self):
        """Begin to accept."""
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End every connection, and wait for every thread."""
        self.stopping.set()
        for each in [self._socket, *self._open]:
            self.end(each)
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()
        self._socket.close()

    @abstractmethod
    def serve(self, client: socket.socket) -> None:
        """Serve one connection; what ends it is not an error."""

    def keep(self, sock: socket.socket) -> socket.socket:
        """End this socket too when all is over."""
        self._open.add(sock)
        return sock

    @staticmethod
    def end(sock: socket.socket) -> None:
        """Wake whoever waits on a socket, and tell its other side."""
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    def _start(self, function, *arguments) -> None:
        thread = threading.Thread(target=function, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self.stopping.is_set():
            try:
                client, _address = self._socket.accept()
            except OSError:
                return
            self._start(self._guarded, self.keep(client))

    def _guarded(self, client: socket.socket) -> None:
        with client, suppress(Ended, Malformed, OSError):
            self.serve(client)
        self._open.discard(client)


class SpedoServer(Listener):
    """Speaks AUTH, PING, QPUSH and QPOP, and nothing else.

    Args:
        password: what AUTH must bring; None lets everybody in.
        username: the user that AUTH must name; None for AUTH with a password alone.
    """

    def __init__(self, password: str | None = None, username: str | None = None) -> None:
        super().__init__()
        self._credentials = [word.encode() for word in (username, password) if word is not None]
        self._faults: dict[bytes, deque[Fault]] = defaultdict(deque)
        self.log: list[Words] = []
        self.connections = 0
        self.queues: dict[bytes, list[tuple[int, bytes]]] = defaultdict(list)

    @property
    def url(self) -> str:
        """The server's URL, without credentials."""
        return f"spedo://127.0.0.1:{self.port}"

    @property
    def verbs(self) -> list[bytes]:
        """The first word of each command so far."""
        return [words[0] for words in self.log]

    def misbehave(
        self, verb: str, reply: bytes = b"", then: str = "stay", *, perform: bool = False
    ) -> None:
        """Answer the next command of that name in this way."""
        self._faults[verb.encode()].append(Fault(reply, then, perform))

    def serve(self, client: socket.socket) -> None:
        """Answer the commands of one connection."""
        self.connections += 1
        stream = Stream(client)
        trusted = not self._credentials
        try:
            while True:
                try:
                    words, _raw = stream.command()
                except Malformed as error:
                    self.log.append([b"MALFORMED", *error.args])
                    client.sendall(b"-ERR Protocol error\r\n")
                    return
                self.log.append(words)
                if words[0] == b"AUTH":
                    trusted = words[1:] == self._credentials
                fault = self._faults[words[0]].popleft() if self._faults[words[0]] else None
                if fault is None:
                    client.sendall(self._answer(words, trusted))
                    continue
                if fault.perform:
                    self._answer(words, trusted)
                client.sendall(fault.reply)
                if fault.then == "hang":
                    self.stopping.wait(60)
                if fault.then != "stay":
                    return
        finally:
            stream.close()

    def _answer(self, words: Words, trusted: bool) -> bytes:
        match words:
            case [b"AUTH", *_]:
                return b"+OK\r\n" if trusted else b"-WRONGPASS invalid username or password\r\n"
            case _ if not trusted:
                return b"-NOAUTH Authentication required.\r\n"
            case [b"PING"]:
                return b"+PONG\r\n"
            case [b"QPUSH", key, payload, b"PRIORITY", priority, b"FAMILY", _family]:
                self.queues[key].append((int(priority), payload))
                return b":%d\r\n" % len(self.queues[key])
            case [b"QPOP", key, count]:
                popped = self.queues[key][: int(count)]
                del self.queues[key][: int(count)]
                return b"*%d\r\n" % len(popped) + b"".join(
                    b"$%d\r\n%s\r\n" % (len(item), item) for _priority, item in popped
                )
        return b"-ERR unknown command or wrong arguments\r\n"
