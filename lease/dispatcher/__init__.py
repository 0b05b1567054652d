"""The long-running worker: claims in batches, sends many jobs at a time, records in batches."""

from lease.dispatcher._dispatcher import Dispatcher
from lease.dispatcher._model import MAX_CONCURRENCY, Result, Tally, Until
from lease.errors import Refused

__all__ = ["MAX_CONCURRENCY", "Dispatcher", "Refused", "Result", "Tally", "Until"]
