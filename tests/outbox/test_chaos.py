"""Whatever the accelerator loses, repeats or reorders, and wherever a process dies: one effect.

A schedule is drawn by Hypothesis: what the outbox's users do, what happens to each command on
its way, and at which boundary the process dies. The connection of a dead process is closed
without a commit, which is what the death of its process means to SQLite.
"""

import os
import socket
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lease.errors import AcceleratorError
from lease.outbox import (
    Accelerator,
    Record,
    apply,
    connect,
    create_outbox,
    dispatch,
    open_outbox,
    pending,
    receive,
    record,
    redispatch,
    relay,
)
from tests.outbox.chaos_child import make_effect
from tests.support.chaos import ACTIONS, ChaosProxy, ChaosQueue, seeded
from tests.support.outbox import Killed
from tests.support.processes import run_code
from tests.support.resp import SpedoServer

OPERATIONS = ("record", "dispatch", "redispatch", "relay", "work", "pop-and-die", "fail", "unknown")

Operation = tuple[str, int | None]
Connect = Callable[[], sqlite3.Connection]


class Dying:
    """A fault hook that kills at its n-th boundary; None lets live."""

    def __init__(self, at: int | None) -> None:
        self._left = at

    def __call__(self, _boundary: str) -> None:
        """Count down, and die."""
        if self._left is not None:
            self._left -= 1
            if self._left <= 0:
                raise Killed


class World:
    """The users of one outbox, each operation a process that may die in it."""

    def __init__(self, connect_: Connect, queue: Accelerator) -> None:
        self._connect = connect_
        self._queue = queue
        self._now_ms = 0
        self._number = 0
        self.promised: set[str] = set()

    def clock(self) -> int:
        """Return a present that goes on by a second each time."""
        self._now_ms += 1000
        return self._now_ms

    def run(self, operations: list[Operation]) -> None:
        """Run each operation on a connection of its own; death and failure end just that one."""
        for name, at in operations:
            with closing(self._connect()) as con, suppress(Killed, AcceleratorError, Failed):
                getattr(self, name.replace("-", "_"))(con, Dying(at))

    def record(self, con: sqlite3.Connection, fault: Dying) -> None:
        """Record a new event with its business row."""
        self._number += 1
        name = f"r-{self._number}"
        con.execute("BEGIN IMMEDIATE")
        con.execute("INSERT INTO orders VALUES (?)", (name,))
        record(con, "made", {"n": name}, id=name, clock=self.clock, fault=fault)
        con.execute("COMMIT")
        self.promised.add(name)

    def dispatch(self, con: sqlite3.Connection, fault: Dying) -> None:
        """Push the two oldest."""
        dispatch(con, self._queue, pending(con, limit=2), clock=self.clock, fault=fault)

    def redispatch(self, con: sqlite3.Connection, fault: Dying) -> None:
        """Push all."""
        redispatch(con, self._queue, clock=self.clock, fault=fault)

    def relay(self, con: sqlite3.Connection, _fault: Dying) -> None:
        """Run the loop for a round or two."""
        relay(con, self._queue, Once(), redispatch_after_ms=3000, max_rows=3, clock=self.clock)

    def work(self, con: sqlite3.Connection, fault: Dying, effect: Any = None) -> None:
        """Take a few deliveries and apply each."""
        for each in receive(self._queue, 3):
            apply(con, each, effect or make_effect, clock=self.clock, fault=fault)

    def pop_and_die(self, _con: sqlite3.Connection, _fault: Dying) -> None:
        """Take deliveries, and nothing more is heard."""
        receive(self._queue, 2)

    def fail(self, con: sqlite3.Connection, fault: Dying) -> None:
        """Take a few deliveries, whose effects fail half-way."""

        def failing(each_con: sqlite3.Connection, each: Record) -> None:
            make_effect(each_con, each)
            raise Failed

        self.work(con, fault, failing)

    def unknown(self, con: sqlite3.Connection, fault: Dying) -> None:
        """Somebody pushes what was never recorded, and what contradicts the outbox."""
        stranger = Record(id="stranger", event_type="made", payload_json="{}")
        liar = Record(id="r-1", event_type="forged", payload_json="{}")
        dispatch(con, self._queue, [stranger, liar], clock=self.clock, fault=fault)


class Failed(Exception):
    """An effect that could not be made."""


class Once(Event):
    """Stops the relay when it would wait."""

    def wait(self, timeout: float | None = None) -> bool:
        """Stop."""
        del timeout
        self.set()
        return True


def settle(con: sqlite3.Connection, queue: Accelerator) -> int:
    """Recover as an operator would once all is quiet; return how many deliveries made an effect."""
    made = 0
    while pending(con):
        redispatch(con, queue)
        while deliveries := receive(queue, 50):
            made += sum(apply(con, each, make_effect) for each in deliveries)
    return made


def verify(con: sqlite3.Connection, promised: set[str]) -> None:
    """Demand that every business row has its event, every event one effect, none a second."""
    orders = Counter(row[0] for row in con.execute("SELECT id FROM orders"))
    events = con.execute("SELECT id, event_type, payload_json, state FROM outbox").fetchall()
    effects = Counter(con.execute("SELECT id, event_type, payload_json FROM effects").fetchall())
    delivered = Counter(row[0] for row in con.execute("SELECT outbox_id FROM deliveries"))

    assert promised <= orders.keys()
    assert orders == Counter(row[0] for row in events)
    assert {row[3] for row in events} <= {"processed"}
    assert effects == Counter(row[:3] for row in events)
    assert delivered == orders


OPERATION = st.tuples(
    st.sampled_from(OPERATIONS), st.one_of(st.none(), st.integers(min_value=1, max_value=7))
)


@pytest.fixture(scope="module")
def template() -> Any:
    """An empty outbox with the tables of the application and of its effects, in memory."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as con:
        create_outbox(con)
        con.execute("CREATE TABLE orders (id TEXT)")
        con.execute("CREATE TABLE effects (id TEXT, event_type TEXT, payload_json TEXT)")
        yield con


@settings(
    max_examples=500,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    operations=st.lists(OPERATION, min_size=3, max_size=30),
    actions=st.lists(st.sampled_from(ACTIONS), max_size=40),
)
def test_every_schedule_ends_in_one_effect_each(
    template: sqlite3.Connection, operations: list[Operation], actions: list[str]
):
    """Five hundred schedules of chaos and deaths; after recovery every record has one effect."""
    left = iter(actions)
    queue = ChaosQueue(lambda: next(left, "pass"))
    name = f"file:chaos-{id(queue)}?mode=memory&cache=shared"

    def connect_() -> sqlite3.Connection:
        return sqlite3.connect(name, uri=True, isolation_level=None)

    with closing(connect_()) as con:
        template.backup(con)
        world = World(connect_, queue)
        world.run(operations)
        queue.calm()
        settle(con, queue)
        verify(con, world.promised)
        (counted,) = con.execute("SELECT coalesce(sum(dispatch_count), 0) FROM outbox").fetchone()
        assert counted <= queue.acknowledged


def test_schedules_reach_every_action():
    """The queue of the schedules can do everything that the proxy does, and a calm one nothing."""
    queue = ChaosQueue(seeded(1, 0.9))
    for n in range(400):
        with suppress(AcceleratorError):
            queue.push(b"%d" % n)
        with suppress(AcceleratorError):
            queue.pop(2)

    assert set(queue.acted) == set(ACTIONS)


@pytest.fixture(params=["spedo", "valkey"])
def upstream(request: pytest.FixtureRequest) -> tuple[str, Callable[[], socket.socket]]:
    """The dialect of a real server, and how a proxy reaches it."""
    server = request.getfixturevalue(request.param)
    if isinstance(server, SpedoServer):
        return "spedo", lambda: socket.create_connection(("127.0.0.1", server.port))

    def reach() -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(str(server.unix_socket_path))
        return sock

    return "valkey", reach


@pytest.mark.parametrize("seed", range(6))
def test_proxy_between_real_client_and_server(
    upstream: tuple[str, Callable[[], socket.socket]],
    outbox_path: Path,
    template: sqlite3.Connection,
    seed: int,
):
    """The same over TCP, with redis-py and a real server, on a file."""
    dialect, reach = upstream
    with closing(open_outbox(outbox_path)) as con:
        template.backup(con)
        operations = [
            (name, (seed + n) % 8 or None)
            for n, name in enumerate(["record", "record", *OPERATIONS, "work", "work"] * 3)
        ]
        with ChaosProxy(reach, seeded(seed, 0.5)) as proxy:
            url = f"{dialect}://127.0.0.1:{proxy.port}"
            with closing(connect(url, timeout_s=0.05)) as queue:
                world = World(lambda: open_outbox(outbox_path), queue)
                world.run(operations)
            assert len(set(proxy.acted)) > 4
        with ChaosProxy(reach, lambda: "pass") as proxy:
            url = f"{dialect}://127.0.0.1:{proxy.port}"
            with closing(connect(url, key=queue.key)) as calm:
                settle(con, calm)
        verify(con, world.promised)


@pytest.mark.parametrize(
    "boundary",
    [
        "after-record",
        "after-push",
        "after-count",
        "after-pop",
        "after-mark",
        "effect",
        "after-effect",
        "after-commit",
    ],
)
def test_sigkill_at_each_boundary(
    valkey_url: str, outbox_path: Path, template: sqlite3.Connection, boundary: str
):
    """A process is killed in earnest, a second one recovers: three orders, three effects."""
    with closing(open_outbox(outbox_path)) as con:
        template.backup(con)
    key = f"chaos-{os.getpid()}-{boundary}"
    code = "from tests.outbox.chaos_child import main; main()"

    killed = run_code(code, outbox_path, valkey_url, key, boundary)
    assert (killed.returncode, killed.stdout, killed.stderr) == (-9, "", "")
    done = run_code(code, outbox_path, valkey_url, key, "none")
    assert (done.returncode, done.stderr) == (0, "")

    with closing(open_outbox(outbox_path)) as con:
        verify(con, {"r-1", "r-2", "r-3"})
