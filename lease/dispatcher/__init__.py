"""The long-running worker: claims in batches, sends many jobs at a time, records in batches."""

from lease.dispatcher._dispatcher import Dispatcher
from lease.dispatcher._model import MAX_CONCURRENCY, Result, Tally, Until

__all__ = ["MAX_CONCURRENCY", "Dispatcher", "Result", "Tally", "Until"]
