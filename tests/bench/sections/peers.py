"""Ours against the peers: one job at a time, then in batches, as they come and equally durable."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.bench.adapters import PEERS, Lease, LeaseAgain, LeaseFused, Peer
from tests.bench.durability import DELETE_FULL, DELETE_OFF, Setting
from tests.bench.rounds import Samples, interleaved, joined
from tests.bench.scale import Scale
from tests.bench.table import Row
from tests.bench.targets import PEER_AT_EQUAL_DURABILITY

_OURS = (Lease, LeaseAgain, LeaseFused)
_CONTROLS = (Lease, LeaseAgain)

# A peer whose ratio is nearer to 1 than this is measured again, on so many files; what was first
# found is dropped. Where a file and its journal lie on the disk is worth a few percent.
_CLOSE = 0.1
_FILES = 10

# Of files with a history there is one each, and a round takes so many times as long.
_LONGER = 5


class Contender:
    """One peer in one setting.

    Args:
        kind: the peer.
        setting: what it runs with; None for its own.
        folder: where its own folder is, or is made.
        history: how many jobs are done before anything is measured.
    """

    def __init__(
        self, kind: type[Peer], setting: Setting | None, folder: Path, history: int = 0
    ) -> None:
        self.kind = kind
        self.asked = setting
        self.name = f"{kind.name} {setting}"
        own = folder / self.name
        if history:
            _make_history(kind(own, DELETE_OFF), history)
        self.peer = kind(own, setting)
        self._numbers = count(history)

    def cycle(self) -> Mapping[str, float]:
        """Put, take and acknowledge one job."""
        start = perf_counter()
        self.peer.put(next(self._numbers))
        put = perf_counter()
        job = self.peer.take()
        self.peer.ack(job)
        end = perf_counter()
        assert job is not None
        return {self.name: end - start, f"put {self.name}": put - start}

    def batch(self, size: int) -> Callable[[], Mapping[str, float]]:
        """Return a case that puts a batch, and takes and acknowledges it where that is offered."""
        peer = self.peer

        def case() -> Mapping[str, float]:
            numbers = [next(self._numbers) for _ in range(size)]
            start = perf_counter()
            peer.put_many(numbers)  # type: ignore[attr-defined]  # only the able get here
            times = {f"put {size} {self.name}": (perf_counter() - start) / size}
            if hasattr(peer, "take_many"):
                start = perf_counter()
                peer.ack_many(peer.take_many(size))  # type: ignore[attr-defined]  # as above
                times[f"take {size} {self.name}"] = (perf_counter() - start) / size
            return times

        return case


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure everyone who is installed, side by side."""
    installed = [kind for kind in PEERS if kind.installed()]
    with ExitStack() as stack:
        contenders = [
            Contender(kind, setting, folder)
            for kind in (*_OURS, *installed)
            for setting in (None, *kind.settings)
            if setting is not None or kind in installed
        ]
        for each in contenders:
            stack.callback(each.peer.close)
        samples = _measured(contenders, scale)
        close = [each for each in contenders if _is_close(each, samples)]
        again = _measured_anew(close, scale, folder)
        for each in contenders:
            yield _one_by_one(each, again if each.name in again else samples)
        yield from _with_history(
            [each.kind for each in contenders if _is_equal(each)], scale, folder
        )
        for size in scale.batches:
            able = [
                each
                for each in contenders
                if hasattr(each.peer, "put_many") and each.kind not in _OURS[1:]
            ]
            cases = [each.batch(size) for each in able]
            samples = interleaved(cases, scale.rounds, max(1, scale.turns // 10))
            for each in able:
                yield from _in_batches(each, size, samples)
    for kind in PEERS:
        if kind not in installed:
            yield Row(
                f"{kind.name}: put, take, acknowledge",
                note="not installed",
                target=PEER_AT_EQUAL_DURABILITY,
            )


def _with_history(kinds: list[type[Peer]], scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure files that have been in use, as every file of a queue has after a while."""
    place = folder / "history"
    place.mkdir()
    with ExitStack() as stack:
        contenders = [Contender(kind, DELETE_FULL, place, scale.history) for kind in kinds]
        for each in contenders:
            stack.callback(each.peer.close)
        samples = _measured(contenders, scale._replace(turns=scale.turns * _LONGER))
        for each in contenders:
            yield _one_by_one(each, samples, f" after {scale.history:,} jobs")


def _make_history(peer: Peer, number: int) -> None:
    for each in range(number):
        peer.put(each)
        peer.ack(peer.take())
    peer.close()


def _measured(contenders: list[Contender], scale: Scale) -> Samples:
    return interleaved([each.cycle for each in contenders], scale.rounds, scale.turns, mixed=True)


def _measured_anew(contenders: list[Contender], scale: Scale, folder: Path) -> Samples:
    taken = []
    for number in range(_FILES):
        place = folder / str(number)
        place.mkdir()
        with ExitStack() as stack:
            # By turns the first to have its file made, for it lies next to that of the next.
            order = contenders[number % len(contenders) :] + contenders[: number % len(contenders)]
            anew = [Contender(each.kind, each.asked, place) for each in order]
            for each in anew:
                stack.callback(each.peer.close)
            taken.append(_measured(anew, scale))
    return joined(taken)


def _is_close(contender: Contender, samples: Samples) -> bool:
    """Tell whom a longer measurement takes: near ties, ourselves, and ourselves once more."""
    if contender.asked != DELETE_FULL or contender.kind is LeaseFused:
        return False
    ratio = median(samples.ratios(contender.name, _ours(contender)))
    return contender.kind in _CONTROLS or (_has_target(contender) and abs(ratio - 1) < _CLOSE)


def _has_target(contender: Contender) -> bool:
    kind = contender.kind
    return kind not in _OURS and kind.acks and contender.asked == DELETE_FULL


def _is_equal(contender: Contender) -> bool:
    """Tell the peers that keep jobs as we do, at our setting, and ourselves, twice."""
    return _has_target(contender) or (
        contender.kind in _CONTROLS and contender.asked == DELETE_FULL
    )


def _one_by_one(contender: Contender, samples: Samples, when: str = "") -> Row:
    kind = contender.kind
    return Row(
        f"{_title(contender)}: put, take, acknowledge{when}"
        f"{'' if kind.acks else ' (deletes on read)'}",
        samples.of(contender.name, 1e6),
        ratios=samples.ratios(contender.name, _ours(contender)),
        to=f"ours at {_rival(contender)}",
        target=PEER_AT_EQUAL_DURABILITY if _has_target(contender) else None,
    )


def _in_batches(contender: Contender, size: int, samples: Samples) -> Iterator[Row]:
    ours = _ours(contender)
    for what, title in (("put", "put"), ("take", "take and acknowledge")):
        name, rival = f"{what} {size} {contender.name}", f"{what} {size} {ours}"
        if name in samples:
            yield Row(
                f"{_title(contender)}: {title} {size:,} in one transaction, a job",
                samples.of(name, 1e6),
                ratios=samples.ratios(name, rival) if rival in samples else (),
                to=f"ours at {_rival(contender)}",
            )


def _rival(contender: Contender) -> Setting:
    """Return the setting of ours that a contender is held against: the default but for equals."""
    return contender.asked or DELETE_FULL


def _ours(contender: Contender) -> str:
    return f"{Lease.name} {_rival(contender)}"


def _title(contender: Contender) -> str:
    origin = "" if contender.asked else ", its default"
    return f"{contender.kind.name} ({contender.peer.setting()}{origin})"
