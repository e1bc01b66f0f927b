"""Effectively once under random faults. A failure names its seed: `run_seed` replays the same schedule."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from heron.instance.input.channel_alignment import ChannelAlignment, Verdict
from heron.tmanager.leader.checkpoint_progress import CheckpointProgress
from heron.tmanager.leader.pending_checkpoint import PendingCheckpoint
from parts.checkpoint_model import TopologyModel

SEEDS = 250


def run_seed(seed: int) -> None:
    """One schedule, checked."""
    model = TopologyModel(seed)
    model.run()
    model.check()


def first_failure(seeds: int) -> int | None:
    """The first seed that fails."""
    for seed in range(seeds):
        try:
            run_seed(seed)
        except (AssertionError, KeyError):
            return seed
    return None


@pytest.mark.parametrize(("first", "end"), [(0, 40), pytest.param(40, SEEDS, marks=pytest.mark.matrix)])
def test_committed_output_is_that_of_a_run_without_faults(first: int, end: int) -> None:
    for seed in range(first, end):
        run_seed(seed)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("first", range(0, 10_000, 500))
def test_committed_output_is_that_of_a_run_without_faults_for_many_seeds(first: int) -> None:
    for seed in range(first, first + 500):
        run_seed(seed)


def _any_age(self: ChannelAlignment, source: int, sent_under: int, since: int, version: int) -> Verdict:
    return VERDICT(self, source, sent_under, 0, version)


def _no_loss(self: CheckpointProgress, *_reported: object, again: bool) -> None:
    """Forgets the loss."""


def _one_missing(self: PendingCheckpoint, task_ids: Collection[int]) -> list[int]:
    return MISSING(self, task_ids)[1:]


def _complete(self: CheckpointProgress, number: int) -> bool:
    return self.status().complete >= number


VERDICT, MISSING = ChannelAlignment.verdict, PendingCheckpoint.missing

GUARDS: dict[str, tuple[type, str, Callable[..., object]]] = {
    "segments from before a restore are dropped": (ChannelAlignment, "verdict", _any_age),
    "a loss restores": (CheckpointProgress, "losses_reported", _no_loss),
    "a checkpoint waits for all tasks": (PendingCheckpoint, "missing", _one_missing),
    "the end waits for all commits": (CheckpointProgress, "is_committed", _complete),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_the_model_notices_a_missing_guard(guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would prove nothing."""
    owner, name, without = GUARDS[guard]
    monkeypatch.setattr(owner, name, without)
    assert first_failure(SEEDS) is not None
