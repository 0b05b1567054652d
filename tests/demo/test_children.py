"""The demo's children: what they say, where they stop, and that they end with their parent."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from lease import Event
from lease.demo import _children
from lease.demo._children import Announced, _Parent


class Told(_Parent):
    """A parent that keeps what it is told, and never makes anybody wait."""

    def __init__(self) -> None:
        self.words: list[tuple[str, dict[str, object]]] = []

    def tell(self, word: str, **details: object) -> None:
        """Keep it."""
        self.words.append((word, details))

    def wait_for_ever(self) -> None:
        """Mark the place."""
        self.words.append(("waits", {}))


def sends(hold_at: int | None, *answers: object) -> list[tuple[str, dict[str, object]]]:
    parent = Told()
    left = iter(answers)
    send = Announced(lambda _event: next(left), parent, hold_at)
    for number, answer in enumerate(answers, 1):
        assert send(Event(id=f"job-{number}", qty=1)) is answer
    return parent.words


def test_announced_tells_before_it_sends() -> None:
    """Without a place to hold it never does."""
    assert sends(None, True, True) == [
        ("sending", {"id": "job-1", "is_last": False}),
        ("sending", {"id": "job-2", "is_last": False}),
    ]


def test_announced_holds_once_the_last_is_accepted() -> None:
    """The event in the gap is announced as such, then told as accepted, and then nothing more."""
    assert sends(2, True, True) == [
        ("sending", {"id": "job-1", "is_last": False}),
        ("sending", {"id": "job-2", "is_last": True}),
        ("accepted", {"id": "job-2"}),
        ("waits", {}),
    ]


def test_announced_does_not_hold_what_was_not_accepted() -> None:
    """A bad answer leaves the place to the next event."""
    assert [word for word, _ in sends(1, "no", True)] == [
        "sending",
        "sending",
        "accepted",
        "waits",
    ]


class Pipes:
    """The parent's ends of a child's stdin and stdout."""

    def __init__(self, into: int, out: int) -> None:
        self.into = into
        self.out = out


@contextmanager
def piped() -> Iterator[Pipes]:
    """Stand in for stdin and stdout with pipes."""
    stdin, into = os.pipe()
    out, stdout = os.pipe()
    with (
        open(stdin) as reads,
        open(stdout, "w") as writes,
        patch.object(sys, "stdin", reads),
        patch.object(sys, "stdout", writes),
    ):
        yield Pipes(into, out)
    os.close(out)


def test_a_child_speaks_listens_and_ends_with_its_parent() -> None:
    """JSON lines go out, a byte comes in as go, and the end of stdin is the end of the child."""
    ended = threading.Event()
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        ended.set()

    with piped() as pipes, patch.object(os, "_exit", end):
        parent = _Parent()
        parent.tell("ready", url="u")
        os.write(pipes.into, b"\n")
        parent.wait_for_go()
        os.close(pipes.into)
        assert ended.wait(60)
        assert json.loads(os.read(pipes.out, 1000)) == {"word": "ready", "url": "u"}

    assert codes == [1]


def test_a_child_waits_for_ever() -> None:
    """The gap ends only with the process."""
    waits: list[object] = []

    class Endless:
        def wait(self, *timeout: object) -> None:
            waits.append(timeout)

    with patch.object(threading, "Event", Endless):
        _Parent.wait_for_ever(Told())

    assert waits == [()]


@pytest.mark.parametrize(("role", "function"), [("receive", "receive"), ("dispatch", "dispatch")])
def test_main_plays_the_role(role: str, function: str) -> None:
    """The role's options come as they were given."""
    played: list[Any] = []

    with (
        patch.object(_children, "_Parent", Told),
        patch.object(_children, function, lambda parent, **options: played.append(options)),
    ):
        _children.main(role, {"a": 1})

    assert played == [{"a": 1}]
