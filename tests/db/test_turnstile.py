"""Turns at a database: order among those who ask, and no wait without an end."""

import fcntl
import os
import stat
import threading
import time

import pytest

from lease.db.turnstile import Turnstile
from tests.support.processes import run_code

FOR_EVER = 60
KILLED_INSIDE = """
import os, signal, sys
from lease.db.turnstile import Turnstile
Turnstile(sys.argv[1]).__enter__()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def database(tmp_path):
    """A file that stands for a database; its bytes are never looked at."""
    path = tmp_path / "a ?#%.db"
    path.touch(mode=0o600)
    return path


@pytest.fixture
def turnstile(database):
    """A function that makes a turnstile at the database, closed afterwards."""
    made = []

    def make(patience_s=FOR_EVER):
        made.append(Turnstile(database, patience_s))
        return made[-1]

    yield make
    for each in made:
        each.close()


def is_held(database, gate):
    """Tell whether somebody holds a gate's lock."""
    probe = os.open(f"{database}-gate{gate}", os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(probe)
    return False


def wait_until(condition):
    """Look again and again until something holds, and fail if it never does."""
    until = time.monotonic() + FOR_EVER
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


def test_turnstile_holds_the_inner_gate_alone_during_a_turn(database, turnstile):
    """Inside, the outer gate is free for the next in line, and afterwards both are."""
    with turnstile():
        assert (is_held(database, 1), is_held(database, 2)) == (False, True)

    assert (is_held(database, 1), is_held(database, 2)) == (False, False)


def test_turnstile_gives_the_turn_back_on_an_error(database, turnstile):
    """A turn that fails is over as well."""
    with pytest.raises(KeyboardInterrupt), turnstile():
        raise KeyboardInterrupt

    assert not is_held(database, 2)


def test_turnstile_lets_the_next_in_line_wait_at_the_outer_gate(database, turnstile):
    """The one who writes finds the outer gate taken when it wants to write again."""
    entered = threading.Event()
    first, second, third = turnstile(), turnstile(), turnstile(patience_s=0)

    def wait_for_a_turn():
        with second:
            entered.set()

    waiting = threading.Thread(target=wait_for_a_turn)
    with first:
        waiting.start()
        wait_until(lambda: is_held(database, 1))
        with third:
            assert is_held(database, 1)
        assert not entered.is_set()
    waiting.join(FOR_EVER)

    assert entered.is_set()


@pytest.mark.parametrize("gate", [1, 2])
def test_turnstile_goes_in_without_a_turn_when_its_patience_ends(database, turnstile, gate):
    """A process that was stopped in either gate holds nobody up for ever."""
    impatient = turnstile(patience_s=0)
    stopped = os.open(f"{database}-gate{gate}", os.O_RDONLY)
    fcntl.flock(stopped, fcntl.LOCK_EX)

    with impatient:
        assert is_held(database, gate)
    assert is_held(database, gate)

    os.close(stopped)


@pytest.mark.parametrize("gate", [1, 2])
def test_turnstile_has_less_patience_with_a_gate_that_stayed_shut(
    database, turnstile, monkeypatch, gate
):
    """It waits a tenth as long the next time, and in full once it has found the gate open."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda _: now.__setitem__(0, now[0] + 1))
    each = turnstile(patience_s=100)
    stopped = os.open(f"{database}-gate{gate}", os.O_RDONLY)
    waits = []

    def enter():
        before = now[0]
        with each:
            waits.append(now[0] - before)

    fcntl.flock(stopped, fcntl.LOCK_EX)
    enter()
    enter()
    fcntl.flock(stopped, fcntl.LOCK_UN)
    enter()
    fcntl.flock(stopped, fcntl.LOCK_EX)
    enter()
    os.close(stopped)

    assert waits == [100, 10, 0, 100]


def test_turnstile_opens_a_pipe_in_place_of_a_gate(database):
    """What somebody put there holds nobody up."""
    os.mkfifo(f"{database}-gate1")

    piped = Turnstile(database, 0)
    with piped:
        assert (is_held(database, 1), is_held(database, 2)) == (False, True)
    piped.close()


def test_turnstile_is_freed_by_the_death_of_its_holder(database, turnstile):
    """A killed process leaves no gate shut."""
    assert run_code(KILLED_INSIDE, database).returncode == -9

    with turnstile(patience_s=0):
        assert is_held(database, 2)


@pytest.mark.parametrize(("rights", "gate_rights"), [(0o600, 0o600), (0o664, 0o644)])
def test_turnstile_gates_have_the_rights_of_the_database(database, rights, gate_rights):
    """Nobody gains a right by a gate, and whoever shares the database can share the gates."""
    os.chmod(database, rights)
    old = os.umask(0o022)
    try:
        Turnstile(database).close()
    finally:
        os.umask(old)

    for gate in (1, 2):
        assert stat.S_IMODE(os.stat(f"{database}-gate{gate}").st_mode) == gate_rights


def test_turnstile_needs_an_existing_database(tmp_path):
    """No gates appear beside nothing."""
    with pytest.raises(FileNotFoundError):
        Turnstile(tmp_path / "missing.db")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("gate", [1, 2])
def test_turnstile_follows_no_link_and_leaves_no_descriptor(database, gate):
    """A gate that somebody made a link is refused, and what was opened is closed again."""
    os.symlink(database, f"{database}-gate{gate}")
    before = os.listdir("/proc/self/fd")

    with pytest.raises(OSError, match="symbolic link"):
        Turnstile(database)

    assert len(os.listdir("/proc/self/fd")) == len(before)
