"""Stop: a request that a signal handler may make at any moment."""

import signal
import threading

from lease.outbox import Stop


def test_stop_is_asked_for_good():
    """Once set it stays so, and no wait waits any more."""
    stop = Stop()
    assert not stop.is_set()
    assert not stop.wait(0.001)
    stop.set()
    stop.set()

    assert stop.is_set()
    assert stop.wait(60)
    assert stop.wait()


def test_stop_wakes_who_waits():
    """A wait ends when another thread asks."""
    stop = Stop()
    other = threading.Timer(0.01, stop.set)
    other.start()

    assert stop.wait(60)
    other.join()


def test_stop_may_be_set_by_a_signal():
    """A handler that interrupts the wait itself can set it."""
    stop = Stop()
    before = signal.signal(signal.SIGALRM, lambda _number, _frame: stop.set())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert stop.wait(60)
    finally:
        signal.signal(signal.SIGALRM, before)
