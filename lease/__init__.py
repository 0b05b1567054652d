"""Durable dispatch on one SQLite file: tell the outside world what was committed."""

from lease.errors import UnusableFile
from lease.limits import CONTRACT, WIDE, Limits
from lease.model import Clock, Event, Fault, Outcome, Send, Settled, Ticket
from lease.worker import (
    BadAck,
    Conflict,
    Permanent,
    Retryable,
    claim,
    enqueue,
    finish,
    open_queue,
    redrive,
    retry_delay,
    run_file,
    run_once,
)

__version__ = "0.1.0"

__all__ = [
    "CONTRACT",
    "WIDE",
    "BadAck",
    "Clock",
    "Conflict",
    "Event",
    "Fault",
    "Limits",
    "Outcome",
    "Permanent",
    "Retryable",
    "Send",
    "Settled",
    "Ticket",
    "UnusableFile",
    "__version__",
    "claim",
    "enqueue",
    "finish",
    "open_queue",
    "redrive",
    "retry_delay",
    "run_file",
    "run_once",
]
