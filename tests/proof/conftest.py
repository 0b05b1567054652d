"""What every test of the laboratory may ask for."""

import os
import secrets
from collections.abc import Callable

import pytest

#: The ordinary run is the same each time; the soak takes a new seed, and tells it.
_ORDINARY = 20261130


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[object], None]:
    """Return a function that prints a line, now and at the end of the run."""

    def line(text: object) -> None:
        print(text)  # noqa: T201  (the figures are what a run is for)
        request.node.user_properties.append(("figure", str(text)))

    return line


@pytest.fixture
def seed(request: pytest.FixtureRequest, tell: Callable[[object], None]) -> int:
    """Return the one number that every random choice of a test comes from.

    `LEASE_SEED` in the environment repeats a run.
    """
    fresh = secrets.randbits(32) if request.node.get_closest_marker("soak") else _ORDINARY
    chosen = int(os.environ.get("LEASE_SEED", fresh))
    tell(f"{request.node.name}: LEASE_SEED={chosen}")
    return chosen
