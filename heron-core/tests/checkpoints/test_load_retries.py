"""Loads from a store that is away: repeated, within a time limit, and not when it makes no sense."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heron.checkpoints.load_retries import LoadRetries
from heron.errors import CheckpointError, TornCheckpointError
from heron_testing.fake_clock import FakeClock


class Store:
    """Fails with these errors, one after the other, and then loads."""

    def __init__(self, *errors: CheckpointError) -> None:
        self.errors = list(errors)
        self.clock = FakeClock()
        self.pauses: list[float] = []

    def load(self) -> bytes:
        if self.errors:
            raise self.errors.pop(0)
        return b"state"

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.advance(seconds)

    def loaded(self, limit_s: float, stopped: Callable[[], bool] = lambda: False) -> bytes:
        return LoadRetries(limit_s, stopped, self.pause, self.clock.monotonic_s).until_loaded(self.load)


AWAY = CheckpointError("object a/b: cannot be loaded")


def test_a_load_is_repeated_until_the_store_is_back() -> None:
    """The pauses grow up to a second."""
    store = Store(*[AWAY] * 6)
    assert store.loaded(60.0) == b"state"
    assert store.pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_the_error_after_the_time_limit_names_the_limit_and_the_reason() -> None:
    store = Store(*[AWAY] * 100)
    with pytest.raises(CheckpointError, match=r"a/b: cannot be loaded; 6 attempts within 3 s have failed; repair"):
        store.loaded(3.0)
    assert sum(store.pauses) <= 3.0


@pytest.mark.parametrize("limit_s", [0.0, 60.0])
def test_a_torn_object_is_not_tried_again(limit_s: float) -> None:
    """It stays torn, and the reason must not come late."""
    store = Store(TornCheckpointError("object a/b: was cut"))
    with pytest.raises(TornCheckpointError, match="was cut"):
        store.loaded(limit_s)
    assert store.pauses == []


def test_a_process_that_is_to_stop_does_not_go_on() -> None:
    store = Store(*[AWAY] * 100)
    with pytest.raises(CheckpointError, match="cannot be loaded"):
        store.loaded(60.0, lambda: len(store.pauses) == 2)
    assert len(store.pauses) == 2
