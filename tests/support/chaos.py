"""Chaos between the outbox and its accelerator: a TCP proxy, and a queue that behaves like one.

Both draw what they do to each command from the same list of actions, so that a schedule found
with the fast one can be tried with the real one.
"""

import random
import socket
from collections import deque
from collections.abc import Callable

from lease.errors import AcceleratorError
from tests.support.resp import Listener, Stream

#: What may happen to one command and its reply.
ACTIONS = (
    "pass",
    "drop-command",
    "drop-reply",
    "repeat-command",
    "repeat-reply",
    "reorder",
    "delay",
    "cut-before",
    "cut-after",
    "cut-inside",
)

Choose = Callable[[], str]


class ChaosProxy(Listener):
    """Stands between a client and a server of RESP2, on loopback.

    Args:
        connect: makes a connection to the server.
        choose: returns the action for each command.
    """

    def __init__(self, connect: Callable[[], socket.socket], choose: Choose) -> None:
        super().__init__()
        self._connect = connect
        self._choose = choose
        self.acted: list[str] = []

    def serve(self, client: socket.socket) -> None:
        """Carry commands and replies to and fro until an action or a side ends it."""
        with self.keep(self._connect()) as server:
            pair = _Pair(client, server)
            try:
                goes_on = True
                while goes_on:
                    words, raw = pair.down.command()
                    action = self._choose()
                    self.acted.append(action)
                    if action == "delay":
                        self.stopping.wait(0.005)
                    goes_on = pair.exchange(action, words[0], raw)
            finally:
                pair.close()
                self._open.discard(server)


class _Pair:
    """One client's connection and the one to the server that belongs to it."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self._client = client
        self._server = server
        self.down = Stream(client)
        self._up = Stream(server)
        self._held = b""

    def exchange(self, action: str, verb: bytes, raw: bytes) -> bool:
        """Treat one command as the action says; return whether the connection lives on."""
        if action in ("cut-before", "drop-command"):
            return action != "cut-before"
        if action == "reorder" and verb in (b"QPUSH", b"RPUSH") and not self._held:
            # Acknowledged now, and carried out after the command that comes next.
            self._held = raw
            self._client.sendall(b":1\r\n")
            return True
        reply = self._carry(raw)
        if self._held:
            self._carry(self._held)
            self._held = b""
        if action == "repeat-command":
            self._carry(raw)
        if action == "cut-inside":
            self._client.sendall(reply[: len(reply) // 2])
        elif action not in ("drop-reply", "cut-after"):
            self._client.sendall(reply * (2 if action == "repeat-reply" else 1))
        return action not in ("cut-inside", "cut-after")

    def close(self) -> None:
        """Close both files; the sockets are the proxy's."""
        self.down.close()
        self._up.close()

    def _carry(self, raw: bytes) -> bytes:
        self._server.sendall(raw)
        return self._up.reply()


class ChaosQueue:
    """An accelerator that does to its items what the proxy would have done, without a socket.

    It is deterministic: what it does depends on `choose` alone.
    """

    name = "chaos server"

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._items: deque[bytes] = deque()
        self._held: list[bytes] = []
        self.acknowledged = 0
        self.acted: list[str] = []

    def calm(self) -> None:
        """Behave from now on."""
        self._choose = lambda: "pass"

    def ping(self) -> None:
        """Answer."""

    def close(self) -> None:
        """Forget nothing; the server lives on."""

    def push(self, payload: bytes) -> int:
        """Append, or not, or twice, or later; acknowledge, or fail."""
        action = self._act("drop-command", "cut-before")
        if action == "reorder":
            self._held.append(payload)
        else:
            self._items.append(payload)
            self._items.extend(self._held)
            self._held.clear()
        if action == "repeat-command":
            self._items.append(payload)
        self._fail(action, "drop-reply", "cut-after", "cut-inside")
        self.acknowledged += 1
        return len(self._items)

    def pop(self, count: int) -> list[bytes]:
        """Remove items, and return them or lose them on the way."""
        action = self._act("drop-command", "cut-before")
        popped = [self._items.popleft() for _ in range(min(count, len(self._items)))]
        if action == "repeat-command":
            popped = popped and self.pop(count)
        self._fail(action, "drop-reply", "cut-after", "cut-inside")
        if action == "reorder":
            popped.reverse()
        return popped * 2 if action == "repeat-reply" else popped

    def _act(self, *failures: str) -> str:
        action = self._choose()
        self.acted.append(action)
        self._fail(action, *failures)
        return action

    def _fail(self, action: str, *failures: str) -> None:
        if action in failures:
            raise AcceleratorError(f"{self.name}: {action}")


def seeded(seed: int, share: float) -> Choose:
    """Return a source of actions: that share of them at random by the seed, the rest `pass`."""
    chance = random.Random(seed)
    return lambda: chance.choice(ACTIONS) if chance.random() < share else "pass"
