"""The faults of the state manager suite: a store that is away, full or silent, or whose answers are lost."""

from __future__ import annotations

import queue
from collections.abc import Callable

import pytest

from heron.errors import StateConflictError, StateError, StateUnavailableError
from heron.spi.statemgr import NodeKind, StateManager, Versioned
from heron_testing.contracts.driver import DriverContract, in_time, needed
from heron_testing.faults import FULL_BYTES, Faults
from heron_testing.waiting import wait_until

__all__ = ["StateManagerFaultCases"]

_BLOCK_S = 10.0  # the contract's longest block
_BACK_S = 30.0  # a client may wait between its attempts to connect
_LARGE = b"x" * (16 * FULL_BYTES)


class StateManagerFaultCases(DriverContract):
    """Part of `heron_testing.contracts.statemgr.StateManagerContract`."""

    family = "statemgr"
    driver_class: type[StateManager]

    def test_a_store_that_is_away_is_an_error_and_not_an_empty_store(
        self, manager: StateManager, faults: Faults
    ) -> None:
        """A command that reads "no node" would submit a topology twice. When the store is back, all its nodes are."""
        version = manager.set(NodeKind.TOPOLOGY, "t", b"one")
        attempts: list[Callable[[], object]] = [
            lambda: manager.get(NodeKind.TOPOLOGY, "t"),
            lambda: manager.set(NodeKind.TOPOLOGY, "t", b"two"),
            lambda: manager.delete(NodeKind.TOPOLOGY, "t"),
            lambda: manager.list(NodeKind.TOPOLOGY),
            lambda: manager.hold(NodeKind.LOCK, "t", b"mine"),
        ]
        with needed(manager, faults, "away")():
            for attempt in attempts:
                with in_time(_BLOCK_S), pytest.raises(StateError):
                    attempt()
        wait_until(lambda: _reads(manager), _BACK_S, "the store answers again")
        assert manager.get(NodeKind.TOPOLOGY, "t") == Versioned(b"one", version)
        assert manager.list(NodeKind.TOPOLOGY) == ("t",)
        assert manager.get(NodeKind.LOCK, "t") is None

    def test_a_watch_goes_on_after_the_store_was_away(
        self, open_manager: Callable[[], StateManager], faults: Faults
    ) -> None:
        """Otherwise a stream manager would never learn a new location of the topology manager."""
        manager = open_manager()
        manager.set(NodeKind.TMANAGER_LOCATION, "t", b"one")
        seen: queue.Queue[Versioned | None] = queue.Queue()
        watch = manager.watch(NodeKind.TMANAGER_LOCATION, "t", seen.put)
        with needed(manager, faults, "away")(), pytest.raises(StateError):
            manager.get(NodeKind.TMANAGER_LOCATION, "t")
        wait_until(lambda: _reads(manager), _BACK_S, "the store answers again")
        open_manager().set(NodeKind.TMANAGER_LOCATION, "t", b"two")
        values: list[bytes | None] = []
        while b"two" not in values:
            present = seen.get(timeout=_BACK_S)
            values.append(None if present is None else present.value)
        watch.close()
        assert None not in values, "the watch reported a missing node while the store was away"

    def test_a_hold_can_be_asked_while_the_store_is_away(self, manager: StateManager, faults: Faults) -> None:
        """A leader calls `lost` at each heartbeat; an exception would end it because of a short absence."""
        hold = manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"here")
        with needed(manager, faults, "away")(), in_time(_BLOCK_S):
            assert hold.lost() in (True, False)
        wait_until(lambda: _reads(manager), _BACK_S, "the store answers again")
        hold.release()
        assert hold.lost()

    def test_a_write_that_finds_no_space_changes_nothing(self, manager: StateManager, faults: Faults) -> None:
        """The old plan is still valid; half of a new plan is not."""
        full = needed(manager, faults, "full")
        version = manager.set(NodeKind.PHYSICAL_PLAN, "t", b"one")
        with full():
            for expected in (None, version):
                with pytest.raises(StateError):
                    manager.set(NodeKind.PHYSICAL_PLAN, "t", _LARGE, expected=expected)
            with pytest.raises(StateError):
                manager.set(NodeKind.PACKING_PLAN, "t", _LARGE)
            with pytest.raises(StateError):
                manager.hold(NodeKind.LOCK, "t", _LARGE)
            assert manager.get(NodeKind.PHYSICAL_PLAN, "t") == Versioned(b"one", version)
        assert manager.list(NodeKind.PACKING_PLAN) == ()
        assert manager.get(NodeKind.LOCK, "t") is None
        manager.hold(NodeKind.LOCK, "t", b"mine").release()
        assert manager.set(NodeKind.PHYSICAL_PLAN, "t", _LARGE, expected=version) > version

    def test_a_silent_store_is_given_up_in_time(self, manager: StateManager, faults: Faults) -> None:
        """A server that hangs, or a broken network, must not block the caller."""
        manager.set(NodeKind.TOPOLOGY, "t", b"one")
        attempts: list[Callable[[], object]] = [
            lambda: manager.get(NodeKind.TOPOLOGY, "t"),
            lambda: manager.set(NodeKind.TOPOLOGY, "t", b"two"),
        ]
        with needed(manager, faults, "silent")():
            for attempt in attempts:
                with in_time(_BLOCK_S), pytest.raises(StateUnavailableError):
                    attempt()
        wait_until(lambda: _reads(manager), _BACK_S, "the store answers again")

    def test_a_change_whose_answer_is_lost_is_unknown_and_never_a_conflict(
        self, manager: StateManager, faults: Faults
    ) -> None:
        """A conflict means that nothing has changed, so a retry that meets its own change must not report one.

        A later read shows the outcome, and a change that expects the version of that read succeeds.
        """
        first = manager.set(NodeKind.PACKING_PLAN, "t", b"one")
        with needed(manager, faults, "answers_lost")():
            try:
                manager.set(NodeKind.PACKING_PLAN, "t", b"two", expected=first)
                outcomes = {b"two"}
            except StateConflictError:
                outcomes = {b"one"}
            except StateUnavailableError:
                outcomes = {b"one", b"two"}
        wait_until(lambda: _reads(manager), _BACK_S, "the store answers again")
        present = manager.get(NodeKind.PACKING_PLAN, "t")
        assert present is not None
        assert present.value in outcomes
        assert (present.version > first) == (present.value == b"two")
        manager.set(NodeKind.PACKING_PLAN, "t", b"three", expected=present.version)


def _reads(manager: StateManager) -> bool:
    try:
        manager.list(NodeKind.TOPOLOGY)
    except StateError:
        return False
    return True
