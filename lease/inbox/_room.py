"""A bound on what all the requests in hand may hold together."""

from collections.abc import Iterator
from contextlib import contextmanager


class Room:
    """So many bytes for everybody who is in it.

    Args:
        size: bytes in all.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = 0

    @contextmanager
    def place(self) -> Iterator["Place"]:
        """Give a place, which takes nothing yet and gives all back at the end of the block."""
        place = Place(self)
        try:
            yield place
        finally:
            self._taken -= place.taken

    def take(self, size: int) -> bool:
        """Take so many bytes, or none; return whether there were as many."""
        fits = self._taken + size <= self._size
        self._taken += size * fits
        return fits


class Place:
    """What one request has taken of the room."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.taken = 0

    def grow(self, size: int) -> bool:
        """Take so many bytes more, or none; return whether there was room."""
        fits = self._room.take(size)
        self.taken += size * fits
        return fits
