"""The sender's side: an event goes out over HTTP, and the answer becomes the job's outcome.

Needs the `http` extra.
"""

from lease.delivery._sender import HttpSender

__all__ = ["HttpSender"]
