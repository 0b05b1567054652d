"""Instants as the outbox's TEXT columns hold them: UTC, ISO 8601, always the same length."""

from datetime import UTC, datetime, timedelta

from lease.checks import integer

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The end of the year 9999, the last that ISO 8601 writes with four digits.
MAX_MS = 253_402_300_799_999


def iso(name: str, instant_ms: object) -> str:
    """Return an instant as text, to the millisecond.

    Raises:
        ValueError: it is no exact int from 0 to the end of the year 9999.
    """
    checked = integer(name, instant_ms, 0, MAX_MS)
    return (_EPOCH + timedelta(milliseconds=checked)).isoformat(timespec="milliseconds")
