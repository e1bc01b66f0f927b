"""Of two attempts that know nothing of each other, the one with the lower number ends."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from heron.spi.driver import DriverRef
from heron_scheduler_kit.claim import Claim
from heron_scheduler_kit.managed.container_records import ContainerRecords
from heron_statemgr_localfs.state_manager import LocalFsStateManager
from heron_testing.waiting import wait_until

_LIMIT_S = 20.0


@pytest.fixture
def records(tmp_path: Path) -> Iterator[ContainerRecords]:
    statemgr = LocalFsStateManager.open({"root": str(tmp_path)})
    yield ContainerRecords(statemgr, "t-1")
    statemgr.close()


def state_of(folder: Path) -> DriverRef:
    driver = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
    return DriverRef("statemgr", "localfs", driver, {"root": str(folder)})


def attempts(records: ContainerRecords) -> int:
    found = records.get(1)
    return found.attempts if found else 0


def test_a_later_attempt_or_a_kill_ends_an_attempt(tmp_path: Path, records: ContainerRecords) -> None:
    """The supervisor has lost sight of the machine of the first one, and cannot end it."""
    state = state_of(tmp_path)
    lost: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()

    def tell(number: int, reason: str) -> None:
        lost.put((number, reason))

    with ExitStack() as claims:
        for number in (1, 2):
            claim = Claim(state, ("t", "t-1"), 1, number, partial(tell, number))
            claims.callback(claim.close, _LIMIT_S)
            wait_until(lambda n=number: attempts(records) == n, _LIMIT_S, f"attempt {number} has claimed")  # type: ignore[misc]
        assert lost.get(timeout=_LIMIT_S) == (1, "a later attempt runs elsewhere")
        records.remove()
        assert lost.get(timeout=_LIMIT_S) == (2, "its job was killed")
    assert lost.empty()


def test_an_attempt_that_arrives_late_ends(tmp_path: Path, records: ContainerRecords) -> None:
    """It could not reach the state manager while its successor did; the successor runs on."""
    lost: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
    with ExitStack() as claims:
        for number in (2, 1):
            claim = Claim(state_of(tmp_path), ("t", "t-1"), 1, number, lambda why, n=number: lost.put((n, why)))  # type: ignore[misc]
            claims.callback(claim.close, _LIMIT_S)
            wait_until(lambda: attempts(records) == 2, _LIMIT_S, "attempt 2 has claimed")
        assert lost.get(timeout=_LIMIT_S) == (1, "a later attempt runs elsewhere")
    assert lost.empty()
    assert attempts(records) == 2


def test_an_attempt_that_has_ended_follows_nothing(tmp_path: Path, records: ContainerRecords) -> None:
    """Its thread ends, also while the state manager cannot be used."""
    lost: list[str] = []
    claim = Claim(DriverRef("statemgr", "none", "none:None"), ("t", "t-1"), 1, 1, lost.append)
    claim.close(_LIMIT_S)
    assert not claim._thread.is_alive()
    assert lost == []
    assert attempts(records) == 0
