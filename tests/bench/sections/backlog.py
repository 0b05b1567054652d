"""A claim while a thousand and a million jobs wait: ours durable, the peers at their defaults."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.bench.adapters import PEERS, Lease, Peer
from tests.bench.clones import multiply
from tests.bench.rounds import interleaved
from tests.bench.scale import Scale
from tests.bench.table import Row
from tests.bench.targets import PEER_WITH_BACKLOG

# A claim that costs this many times more with the large backlog grows with it.
_GROWS = 10


def run(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure each peer against ours, one after the other: each needs a file of its own size."""
    few = max(1, scale.backlog // 1_000)
    ours = _filled(Lease, folder / "ours", scale.backlog)
    growing: list[Row] = []
    with closing(ours):
        samples = interleaved([_claims("ours", ours)], scale.rounds)
        yield Row(
            f"ours: claim, {scale.backlog:,} jobs waiting",
            samples.of("ours", 1e6),
            note=f"({ours.setting()})",
        )
        for kind in PEERS:
            title = f"{kind.name}: claim, {scale.backlog:,} jobs waiting"
            if not kind.installed():
                yield Row(title, note="not installed")
                continue
            small = _filled(kind, folder / f"{kind.name} small", few)
            large = _filled(kind, folder / f"{kind.name} large", scale.backlog)
            with closing(small), closing(large):
                cases = {"small": small, "large": large, "ours": ours}
                samples = interleaved(
                    [_claims(name, peer) for name, peer in cases.items()],
                    scale.rounds,
                    max(1, scale.turns // 5),
                )
                grows = median(samples.ratios("large", "small")) > _GROWS
                setting = large.setting()
            row = Row(
                title,
                samples.of("large", 1e6),
                ratios=samples.ratios("large", "ours"),
                to="ours at DELETE + FULL",
                note=f"({setting}{', grows with it' if grows else ''})",
            )
            yield row
            if grows:
                growing.append(row)
            for file in (folder / f"{kind.name} large").iterdir():
                file.unlink()
    least = min(growing, key=lambda row: median(row.ratios), default=Row("", note="none does"))
    yield least._replace(
        what="the least slow of the peers that grow with it", target=PEER_WITH_BACKLOG
    )


def _filled(kind: type[Peer], folder: Path, rows: int) -> Peer:
    peer = kind(folder)
    peer.put(0)
    peer.close()
    multiply(folder / kind.file, kind.table, kind.unique, rows)
    return kind(folder)


def _claims(name: str, peer: Peer) -> Callable[[], Mapping[str, float]]:
    def claim() -> Mapping[str, float]:
        start = perf_counter()
        job = peer.take()
        taken = perf_counter() - start
        assert job is not None
        return {name: taken}

    return claim
