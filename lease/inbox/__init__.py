"""The receiver's side: the same id and quantity is one effect, however often it is sent.

`lease.inbox.http` serves it over HTTP and needs the `http` extra; this package does not.
"""

from lease.inbox._accept import Effect, accept
from lease.inbox._accept_event import EventEffect, accept_event
from lease.inbox._open import create_inbox, open_inbox

__all__ = [
    "Effect",
    "EventEffect",
    "accept",
    "accept_event",
    "create_inbox",
    "open_inbox",
]
