"""The inbox over HTTP, as an ASGI application and as a server; needs the `http` extra."""

from lease.inbox._app import create_app
from lease.inbox._server import serve

__all__ = ["create_app", "serve"]
