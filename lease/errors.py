"""Every exception that `lease` raises on purpose, apart from `ValueError` for unusable input."""


class Conflict(Exception):
    """The same id is already recorded with different content; send it under a new id."""


class Retryable(Exception):
    """Raised by a sender: this attempt failed and a later one may succeed."""


class Permanent(Exception):
    """Raised by a sender: no later attempt can succeed; the job is quarantined."""


class BadAck(Exception):
    """The sender returned something other than True; the lease is kept until it ends."""


class Refused(Exception):
    """The receiver refuses every job for good; a worker that was told to gives up."""


class UnusableFile(Exception):
    """This file cannot serve as the database asked for; the message says why and what to do."""


class WalResetWarning(UserWarning):
    """This SQLite may damage a file with a write-ahead log; the message says which one does not."""


class AcceleratorError(Exception):
    """A transient queue failed; the message says which server and what. No record is lost by it."""
