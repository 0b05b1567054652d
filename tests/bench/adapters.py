"""The peers that install from the package index, each behind the same few calls, and ourselves.

A peer is imported when it is opened; one that is not installed is reported as such. Each job
carries the id and the quantity that ours carry.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from lease import jobs
from tests.bench.durability import (
    DELETE_FULL,
    DELETE_OFF,
    WAL_FULL,
    Setting,
    no_longer_watch,
    read_back,
    setting_of,
    watch,
)
from tests.bench.files import NOW, OWNER, opened

_RATE = 10**9


def payload(number: int) -> dict[str, Any]:
    """Return what the job of that number carries."""
    return {"id": f"event_{number}", "qty": 7}


class Peer(ABC):
    """A queue that can be measured.

    Each adapter has `_open(folder)`, `put(number)`, `take()`, which returns a job in hand, and
    `ack(job)`; those that offer it have `put_many(numbers)`, `take_many(count)` and
    `ack_many(jobs)` as well.
    """

    #: Its name in the package index, and the module that it installs.
    name: ClassVar[str]
    module: ClassVar[str]
    #: False where reading deletes: nothing is left to recover after a death.
    acks: ClassVar[bool] = True
    #: The settings that it can be given in place of its own.
    settings: ClassVar[tuple[Setting, ...]] = (DELETE_FULL, WAL_FULL, DELETE_OFF)
    #: Its file, its table of jobs, and the columns that no two rows may share.
    file: ClassVar[str] = "queue.db"
    table: ClassVar[str]
    unique: ClassVar[tuple[str, ...]] = ()

    put: Callable[[int], object]
    take: Callable[[], Any]
    ack: Callable[[Any], object]

    def __init__(self, folder: Path, setting: Setting | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.asked = setting
        watch(folder, setting)
        self._open(folder)
        no_longer_watch(folder)

    @abstractmethod
    def _open(self, folder: Path) -> None:
        """Open the peer's queue in a folder."""

    @classmethod
    def installed(cls) -> bool:
        """Return whether its module can be found."""
        return find_spec(cls.module) is not None

    def setting(self) -> Setting:
        """Return what it runs with."""
        return read_back(self.folder)

    def close(self) -> None:  # noqa: B027  (most peers hold nothing open)
        """Let go of the file."""


class Lease(Peer):
    """Ourselves."""

    name = "lease-queue"
    module = "lease"
    table = "jobs"
    unique = ("id",)

    def _open(self, folder: Path) -> None:
        setting = self.asked or DELETE_FULL
        self._con = opened(folder / self.file, setting.journal_mode, setting.synchronous)

    def put(self, number: int) -> object:
        return jobs.enqueue(self._con, payload(number), NOW, 60_000)

    def take(self) -> Any:
        return jobs.claim(self._con, OWNER, NOW)

    def ack(self, job: Any) -> object:
        return jobs.finish(self._con, job, "ok", NOW)

    def put_many(self, numbers: Sequence[int]) -> object:
        return jobs.enqueue_many(self._con, [payload(each) for each in numbers], NOW, 60_000)

    def take_many(self, count: int) -> Any:
        return jobs.claim_many(self._con, OWNER, NOW, count)

    def ack_many(self, taken: Any) -> object:
        return jobs.finish_many(self._con, [(job, "ok", 0) for job in taken], NOW)

    def setting(self) -> Setting:
        return setting_of(self._con)

    def close(self) -> None:
        self._con.close()


class LeaseAgain(Lease):
    """Ourselves once more: how far its ratio is from 1 is how far any may be by chance."""

    name = "lease-queue again"
    settings = (DELETE_FULL,)


class LeaseFused(Lease):
    """Ourselves, finishing a job in the transaction that claims the next, as a worker does."""

    name = "lease-queue, finish_and_claim"
    settings = (DELETE_FULL, WAL_FULL)

    def _open(self, folder: Path) -> None:
        super()._open(folder)
        self.put(-1)
        self._next = super().take()

    def take(self) -> Any:
        return self._next

    def ack(self, job: Any) -> object:
        statuses, (self._next,) = jobs.finish_and_claim(self._con, [(job, "ok", 0)], OWNER, NOW, 1)
        return statuses


class LiteQueue(Peer):
    """Locks a message until it is marked as done."""

    name = "litequeue"
    module = "litequeue"
    table = "Queue"
    unique = ("message_id",)

    def _open(self, folder: Path) -> None:
        from litequeue import LiteQueue as Queue

        self._queue = Queue(folder / self.file)

    def put(self, number: int) -> object:
        return self._queue.put(json.dumps(payload(number)))

    def take(self) -> Any:
        return self._queue.pop()

    def ack(self, job: Any) -> object:
        claim = {"claim_id": job.claim_id} if hasattr(job, "claim_id") else {}
        return self._queue.done(job.message_id, **claim)

    def close(self) -> None:
        self._queue.close()


class PersistQueue(Peer):
    """Its acknowledging queue on SQLite."""

    name = "persist-queue"
    module = "persistqueue"
    file = "data.db"
    table = "ack_queue_default"

    def _open(self, folder: Path) -> None:
        from persistqueue import SQLiteAckQueue

        self._queue = SQLiteAckQueue(str(folder))

    def put(self, number: int) -> object:
        return self._queue.put(payload(number))

    def take(self) -> Any:
        return self._queue.get(block=False, raw=True)

    def ack(self, job: Any) -> object:
        return self._queue.ack(job)

    def close(self) -> None:
        self._queue.close()


class Monlite(Peer):
    """The queue of a document store."""

    name = "monlite"
    module = "monlite"
    table = "_jobs"

    def _open(self, folder: Path) -> None:
        from monlite import create_db
        from monlite.queue import create_queue

        self._db = create_db(str(folder / self.file))
        self._queue = create_queue(self._db)

    def put(self, number: int) -> object:
        return self._queue.add("jobs", payload(number))

    def take(self) -> Any:
        return self._queue.claim("jobs")

    def ack(self, job: Any) -> object:
        return self._queue.complete(job)

    def close(self) -> None:
        self._db.sqlite.close()


class QueueMax(Peer):
    """One of its shards, with its rate limit out of the way."""

    name = "queue-max"
    module = "queue_max"
    file = "shard_0.db"
    table = "fila"

    def _open(self, folder: Path) -> None:
        from queue_max import Queue

        self._queue = Queue(shards=1, rate_limit=_RATE, data_dir=str(folder))

    def put(self, number: int) -> object:
        return self._queue.enqueue(payload(number))

    def take(self) -> Any:
        return self._queue.pop_job(OWNER)

    def ack(self, job: Any) -> object:
        return self._queue.complete_job(job.id, 0)

    def put_many(self, numbers: Sequence[int]) -> object:
        return self._queue.enqueue_batch([{"payload": payload(each)} for each in numbers])

    def close(self) -> None:
        self._queue.close()


class Spoolctl(Peer):
    """The store under a runner of commands."""

    name = "spoolctl"
    module = "spoolctl"
    table = "jobs"

    def _open(self, folder: Path) -> None:
        from spoolctl import store

        self._store = store
        self._folder = str(folder)
        self._con = store.connect(str(folder / self.file))

    def put(self, number: int) -> object:
        return self._store.add_job(self._con, ["true", f"event-{number}", "7"], 60, 3, 0.0)

    def take(self) -> Any:
        return self._store.claim_next(self._con, OWNER, os.getpid(), 1.0, self._folder)

    def ack(self, job: Any) -> object:
        claimed, attempt = job
        return self._store.record_success(
            self._con, claimed.id, attempt.id, OWNER, os.getpid(), 2.0
        )

    def close(self) -> None:
        self._con.close()


class Ballast(Peer):
    """Opens a connection for each transaction of its own."""

    name = "ballast-py"
    module = "ballast"
    table = "ballast_jobs"
    unique = ("id",)

    def _open(self, folder: Path) -> None:
        import ballast

        self._ballast = ballast
        self._db = ballast.Database(folder / self.file)
        ballast.install(self._db)
        self._handlers = {"job": lambda con, body: None}

    def put(self, number: int) -> object:
        with self._db.transaction() as con:
            return self._ballast.queue.enqueue(con, "job", payload(number))

    def take(self) -> Any:
        return self._ballast.lease_next_job(self._db)

    def ack(self, job: Any) -> object:
        return self._ballast.execute_job(self._db, job, self._handlers)

    def put_many(self, numbers: Sequence[int]) -> object:
        with self._db.transaction() as con:
            return [self._ballast.queue.enqueue(con, "job", payload(each)) for each in numbers]


class Huey(Peer):
    """Its storage on SQLite; reading deletes."""

    name = "huey"
    module = "huey"
    acks = False
    table = "task"

    def _open(self, folder: Path) -> None:
        from huey.storage import SqliteStorage

        self._storage = SqliteStorage(filename=str(folder / self.file))

    def put(self, number: int) -> object:
        return self._storage.enqueue(json.dumps(payload(number)).encode())

    def take(self) -> Any:
        return self._storage.dequeue()

    def ack(self, job: Any) -> object:
        return job

    def close(self) -> None:
        self._storage.close()


class SimpleBroker(Peer):
    """Demands WAL; reading deletes."""

    name = "simplebroker"
    module = "simplebroker"
    acks = False
    settings = (WAL_FULL,)
    table = "messages"

    def _open(self, folder: Path) -> None:
        from simplebroker import Queue

        self._queue = Queue("jobs", db_path=str(folder / self.file), persistent=True)

    def put(self, number: int) -> object:
        return self._queue.write(json.dumps(payload(number)))

    def take(self) -> Any:
        return self._queue.read()

    def ack(self, job: Any) -> object:
        return job

    def close(self) -> None:
        self._queue.close()


class LocalQueue(Peer):
    """Written in Rust, with a switch of its own between two levels."""

    name = "localqueue"
    module = "localqueue"
    settings = (WAL_FULL,)
    file = "localqueue.db"
    table = "messages"

    def _open(self, folder: Path) -> None:
        from localqueue import DurabilityMode, SimpleQueue

        mode = DurabilityMode.DURABLE if self.asked == WAL_FULL else DurabilityMode.RELAXED
        self._queue: Any = SimpleQueue(str(folder), durability=mode)

    def put(self, number: int) -> object:
        return self._queue.put(payload(number))

    def take(self) -> Any:
        return self._queue.get_nowait()

    def ack(self, job: Any) -> object:
        return self._queue.ack(job)

    def put_many(self, numbers: Sequence[int]) -> object:
        return self._queue.put_many([payload(each) for each in numbers])

    def setting(self) -> Setting:
        return self.asked or Setting("WAL", "NORMAL")

    def close(self) -> None:
        self._queue.close()


class Honker(Peer):
    """Written in Rust, with its own SQLite."""

    name = "honker"
    module = "honker"
    settings = ()
    table = "_honker_live"

    def _open(self, folder: Path) -> None:
        import honker

        self._db = honker.open(str(folder / self.file))
        self._queue = self._db.queue("jobs")

    def put(self, number: int) -> object:
        return self._queue.enqueue(payload(number))

    def take(self) -> Any:
        return self._queue.claim_one(OWNER)

    def ack(self, job: Any) -> object:
        return job.ack()

    def put_many(self, numbers: Sequence[int]) -> object:
        with self._db.transaction() as transaction:
            return [self._queue.enqueue(payload(each), tx=transaction) for each in numbers]

    def take_many(self, count: int) -> Any:
        return self._queue.claim_batch(OWNER, count)

    def ack_many(self, taken: Any) -> object:
        return self._queue.ack_batch([job.id for job in taken], OWNER)

    def setting(self) -> Setting:
        return Setting("WAL", "NORMAL")

    def close(self) -> None:
        self._db.close()


class PulseQueue(Peer):
    """Has a fencing token; needs Python 3.12."""

    name = "pulse-queue"
    module = "pulse_queue"
    table = "tasks"
    unique = ("id",)

    def _open(self, folder: Path) -> None:
        from pulse_queue.store import Store

        self._store = Store(folder / self.file)

    def put(self, number: int) -> object:
        return self._store.enqueue(payload(number))

    def take(self) -> Any:
        return self._store.lease_next_task(OWNER)

    def ack(self, job: Any) -> object:
        return self._store.complete_task(job.id, OWNER, job.lease_epoch)

    def close(self) -> None:
        self._store.close()


PEERS: tuple[type[Peer], ...] = (
    LiteQueue,
    PersistQueue,
    Monlite,
    QueueMax,
    Spoolctl,
    Ballast,
    LocalQueue,
    Honker,
    PulseQueue,
    Huey,
    SimpleBroker,
)
