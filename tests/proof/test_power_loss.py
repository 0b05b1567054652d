"""The power cut at random moments: what each setting promises, and that the laboratory can tell."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proof.power_loss import Loss, Mode, explore, summary

Tell = Callable[[object], None]

CAME_BACK = "all but the last, its journal came back"
ON_ITS_WAY = "one more, on its way"

#: What may be found beside all that returned, and what a run of some size does find.
PROMISES = {
    Mode("delete", "FULL"): {CAME_BACK},
    Mode("delete", "EXTRA"): set(),
    Mode("wal", "FULL"): {ON_ITS_WAY},
}

each_promise = pytest.mark.parametrize("mode", PROMISES, ids="-".join)


def check(mode: Mode, losses: list[Loss], tell: Tell) -> None:
    tell(f"power loss, {'-'.join(mode)}: {summary(losses)}")
    kinds = {loss.kind for loss in losses}

    assert [loss for loss in losses if loss.kind == "wrong"] == []
    assert kinds == {"all that returned"} | PROMISES[mode]


@each_promise
def test_power_loss_keeps_whole_transactions(
    tmp_path: Path, mode: Mode, seed: int, tell: Tell
) -> None:
    """After any cut the rows are those of whole transactions, as many as the setting promises."""
    check(mode, explore(tmp_path, mode, seed, histories=8, points=50), tell)


@pytest.mark.soak
@each_promise
def test_power_loss_keeps_whole_transactions_for_long(
    tmp_path: Path, mode: Mode, seed: int, tell: Tell
) -> None:
    """The same, at many more moments."""
    check(mode, explore(tmp_path, mode, seed, histories=60, points=60), tell)


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_power_loss_is_seen_where_nothing_is_synced(
    tmp_path: Path, journal: str, seed: int
) -> None:
    """With `synchronous=OFF` the same laboratory finds torn files and lost transactions."""
    losses = explore(tmp_path, Mode(journal, "OFF"), seed, histories=4, points=25)

    kinds = Counter(loss.kind for loss in losses)
    assert kinds["wrong"] > len(losses) / 4
    assert any(isinstance(loss.found, str) for loss in losses)
