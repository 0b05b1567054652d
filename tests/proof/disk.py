"""A disk that forgets: what SQLite wrote and synced, and what may be left after power loss.

The rules are those that SQLite counts on, and no kinder. A write lasts once its file is synced.
Before that each of its sectors may be on the disk or not, in any order, whatever came later. A
file's name lasts once its directory is synced, and so does the end of it; names change in order.
SQLite's Unix layer syncs the directory with the first sync of a journal or write-ahead log that
it opened, and after a delete only where `synchronous=EXTRA` asks for it.
"""

from random import Random
from typing import NamedTuple

_SECTOR = 512


class Event(NamedTuple):
    """One call that SQLite made on its files."""

    kind: str
    file: str
    offset: int = 0
    data: bytes = b""
    syncs_folder: bool = False


class _Node:
    """A file, whatever name it has or had."""

    def __init__(self, content: bytes = b"") -> None:
        self.lasting = bytearray(content)
        self.waiting: list[Event] = []
        self.folder_waits = False

    def sync(self) -> None:
        for event in self.waiting:
            _put(self.lasting, event)
        self.waiting.clear()


class Disk:
    """The files of one folder as far as they are safe, and all that still waits for a sync."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._lasting = {name: _Node(content) for name, content in files.items()}
        self._named = dict(self._lasting)
        # Each new or ended name that waits for the folder; None for an ended one.
        self._renamed: list[tuple[str, _Node | None]] = []

    def apply(self, event: Event) -> None:
        """Take in one call."""
        if event.kind == "open":
            self._open(event)
        elif event.kind == "delete":
            self._named.pop(event.file)
            self._renamed.append((event.file, None))
            if event.syncs_folder:
                self._sync_folder()
        elif event.kind == "sync":
            self._sync(self._named[event.file])
        else:
            self._named[event.file].waiting.append(event)

    @property
    def delete_waits(self) -> bool:
        """Tell whether a deleted file may come back."""
        return any(node is None for _, node in self._renamed)

    def lose_power(self, chance: Random) -> dict[str, bytes]:
        """Return what the files hold when the power is back; the disk itself stays as it is."""
        lasting = dict(self._lasting)
        for name, node in self._renamed[: chance.randint(0, len(self._renamed))]:
            if node is None:
                lasting.pop(name)
            else:
                lasting[name] = node
        kept = chance.choice((0.0, 0.5, 0.9, 1.0))
        return {name: _left_of(node, kept, chance) for name, node in lasting.items()}

    def _open(self, event: Event) -> None:
        if event.file not in self._named:
            self._named[event.file] = _Node()
            self._renamed.append((event.file, self._named[event.file]))
        self._named[event.file].folder_waits = event.syncs_folder

    def _sync(self, node: _Node) -> None:
        node.sync()
        if node.folder_waits:
            node.folder_waits = False
            self._sync_folder()

    def _sync_folder(self) -> None:
        self._lasting = dict(self._named)
        self._renamed.clear()


def _left_of(node: _Node, kept: float, chance: Random) -> bytes:
    content = bytearray(node.lasting)
    for event in node.waiting:
        if event.kind == "truncate":
            if chance.random() < kept:
                _put(content, event)
            continue
        for at in range(0, len(event.data), _SECTOR):
            if chance.random() < kept:
                sector = event.data[at : at + _SECTOR]
                _put(content, event._replace(offset=event.offset + at, data=sector))
    return bytes(content)


def _put(content: bytearray, event: Event) -> None:
    if event.kind == "truncate":
        del content[event.offset :]
        return
    end = event.offset + len(event.data)
    content.extend(bytes(max(0, end - len(content))))
    content[event.offset : end] = event.data
