"""The outbox: events recorded in the application's transaction, delivered until they take effect.

The table is the truth. An accelerator makes delivery fast and may lose, repeat or reorder
whatever it is given.
"""

from lease.errors import AcceleratorError, Conflict, Refused
from lease.outbox._apply import apply
from lease.outbox._dead_ids import dead_ids
from lease.outbox._deliver import Delivered, Tally, deliver, document
from lease.outbox._dispatch import dispatch, redispatch
from lease.outbox._list import Pending, list_pending
from lease.outbox._open import create_outbox, open_outbox
from lease.outbox._pending import pending
from lease.outbox._prune import prune
from lease.outbox._receive import receive
from lease.outbox._record import record
from lease.outbox._relay import relay
from lease.outbox._stats import Stats, stats
from lease.outbox._stop import Stop
from lease.outbox.accelerator import Accelerator, connect
from lease.outbox.local import LocalQueue
from lease.outbox.model import Effect, Record

__all__ = [
    "Accelerator",
    "AcceleratorError",
    "Conflict",
    "Delivered",
    "Effect",
    "LocalQueue",
    "Pending",
    "Record",
    "Refused",
    "Stats",
    "Stop",
    "Tally",
    "apply",
    "connect",
    "create_outbox",
    "dead_ids",
    "deliver",
    "dispatch",
    "document",
    "list_pending",
    "open_outbox",
    "pending",
    "prune",
    "receive",
    "record",
    "redispatch",
    "relay",
    "stats",
]
