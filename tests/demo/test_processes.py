"""Children: heard, ended, and never left behind."""

import os
import signal
from pathlib import Path

import pytest

from lease.demo import DemoError, _processes
from lease.demo._processes import Children
from tests.support.cli import until


def pid(children: Children, name: str) -> int:
    return children._running[name].pid


def is_gone(process: int) -> bool:
    return not os.path.exists(f"/proc/{process}")


def test_children_are_gone_after_the_block(tmp_path: Path) -> None:
    """Whatever ends the block, no process is left."""
    started: list[int] = []

    def play() -> None:
        with Children(str(tmp_path), 60) as children:
            children.start("receiver", "receive", inbox=str(tmp_path / "inbox.db"))
            heard = children.hear()
            started.append(pid(children, "receiver"))
            assert (heard.name, heard.word) == ("receiver", "ready")
            assert heard["url"].startswith("http://127.0.0.1:")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        play()

    assert is_gone(*started)


def test_hear_tells_why_a_child_has_ended(tmp_path: Path) -> None:
    """The last line of its complaint is the reason."""
    with Children(str(tmp_path), 60) as children:
        children.start("receiver", "receive", inbox=str(tmp_path))

        with pytest.raises(DemoError, match=r"'receiver' ended unexpectedly: .*unable to open"):
            children.hear()


def test_hear_knows_when_there_is_no_reason(tmp_path: Path) -> None:
    """A child that somebody else has killed says nothing."""
    with Children(str(tmp_path), 60) as children:
        children.start("receiver", "receive", inbox=str(tmp_path / "inbox.db"))
        children.hear()
        os.kill(pid(children, "receiver"), signal.SIGKILL)

        with pytest.raises(DemoError, match="ended unexpectedly: it gave no reason"):
            children.hear()


def test_hear_gives_up_when_the_time_is_over(tmp_path: Path) -> None:
    """Nothing hangs for longer than it may take."""
    with Children(str(tmp_path), 0) as children:
        children.start("receiver", "receive", inbox=str(tmp_path / "inbox.db"))

        with pytest.raises(DemoError, match="took too long"):
            children.hear()


def test_hear_passes_over_the_end_of_a_child_that_was_ended(tmp_path: Path) -> None:
    """Only an end that nobody asked for is a failure."""
    with Children(str(tmp_path), 60) as children:
        children.start("first", "receive", inbox=str(tmp_path / "first.db"))
        children.hear()
        assert children.kill("first") == -signal.SIGKILL
        children.start("second", "receive", inbox=str(tmp_path / "second.db"))

        assert children.hear().name == "second"


def test_end_lets_a_child_end_by_a_signal(tmp_path: Path) -> None:
    """An orderly end closes the child's database."""
    with Children(str(tmp_path), 60) as children:
        children.start("receiver", "receive", inbox=str(tmp_path / "inbox.db"))
        children.hear()
        child = children._running["receiver"]

        children.end("receiver", by=signal.SIGTERM)

    assert child.returncode == 0


def test_end_kills_a_child_that_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that goes on regardless is not waited for beyond its grace."""
    monkeypatch.setattr(_processes, "_GRACE_S", 0.01)
    with Children(str(tmp_path), 60) as children:
        children.start("receiver", "receive", inbox=str(tmp_path / "inbox.db"))
        children.hear()
        child = children._running["receiver"]

        children.end("receiver")

    assert child.returncode == -signal.SIGKILL


def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    """A parent that is killed takes its children along: their stdin ends with it."""
    with Children(str(tmp_path), 60) as children:
        children.start("receiver", "receive", inbox=str(tmp_path / "inbox.db"))
        children.hear()
        child = children._running["receiver"]
        assert child.stdin is not None

        child.stdin.close()

        until(lambda: child.poll() == 1)
