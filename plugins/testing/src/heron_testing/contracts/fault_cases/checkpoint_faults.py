"""The faults of the checkpoint suite: killed and racing processes, and a store that is away, full or silent."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from heron.errors import CheckpointError
from heron.spi.checkpoint import CheckpointStore
from heron.spi.options import option_fields
from heron_testing.contracts.driver import DriverContract, in_time, needed
from heron_testing.contracts.parts.second_process import pattern, second_process
from heron_testing.faults import FULL_BYTES, Faults

__all__ = ["CheckpointStoreFaultCases"]

_STALL_S = 30.0  # the contract's longest time without progress
_LARGE_BYTES = 8 * 1024 * 1024
_KILLED_AFTER = (1, 1, 2, 3, 5)  # lines of the process: kills come before, during and after a store
_OBJECTS = 20
_LOADS = 30


class CheckpointStoreFaultCases(DriverContract):
    """Part of `heron_testing.contracts.checkpoint.CheckpointStoreContract`."""

    family = "checkpoint"

    @pytest.fixture
    def store(self, options: dict[str, object]) -> CheckpointStore:
        """The driver under test."""
        return self.opened(options)

    def opened(self, options: dict[str, object]) -> CheckpointStore:
        """Open the driver, as each process does."""
        driver = self.driver_class.open(options)
        assert isinstance(driver, CheckpointStore)
        return driver

    def test_a_store_killed_in_the_middle_leaves_a_whole_object_or_none(
        self, store: CheckpointStore, options: dict[str, object]
    ) -> None:
        """After SIGKILL at any moment, the object is absent or one of those that the process stored."""
        name = "words/words-1/0000000001/task-1"
        for lines in _KILLED_AFTER:
            with self._storing(options, "on", name, _LARGE_BYTES) as process:
                assert process.stdout is not None
                assert [process.stdout.readline() for _ in range(lines)] == ["storing\n"] * lines
                process.kill()
            assert {each.size_bytes for each in store.list("words")} <= {_LARGE_BYTES}
            for each in store.list("words"):
                _assert_whole(store.load(each.name))
            store.store(name, b"again")
            assert store.load(name) == b"again"
            store.dispose([name])
        assert store.list("words") == ()

    def test_an_object_that_is_replaced_is_loaded_whole(
        self, store: CheckpointStore, options: dict[str, object]
    ) -> None:
        """A task that was declared dead may still store while its successor restores."""
        name = "words/words-1/0000000001/task-1"
        store.store(name, pattern(0, _LARGE_BYTES))
        with self._storing(options, "on", name, _LARGE_BYTES) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "storing\n"
            for _ in range(_LOADS):
                _assert_whole(store.load(name))
                assert [(each.name, each.size_bytes) for each in store.list("words")] == [(name, _LARGE_BYTES)]
            process.kill()

    def test_two_processes_store_at_the_same_time(self, store: CheckpointStore, options: dict[str, object]) -> None:
        """All tasks of a topology save a checkpoint at once, into folders that none of them has made before."""
        prefixes = [f"words/words-1/0000000001/task-{task}" for task in (1, 2)]
        with contextlib.ExitStack() as stack:
            processes = [stack.enter_context(self._storing(options, "each", each, _OBJECTS)) for each in prefixes]
            assert [each.wait() for each in processes] == [0, 0]
        names = [f"{prefix}-{number}" for prefix in prefixes for number in range(_OBJECTS)]
        assert [each.name for each in store.list("words")] == sorted(names)
        for name in names:
            assert store.load(name) == name.encode()

    def test_a_store_that_is_away_is_an_error_and_comes_back(
        self, store: CheckpointStore, options: dict[str, object], faults: Faults
    ) -> None:
        """A checkpoint fails and the topology goes on; the next one succeeds. No error shows a secret."""
        store.store("words/run/task-1", b"state")
        fields = option_fields(self.driver_class.options_type)
        secrets = [str(options[each.name]) for each in fields if each.secret and options.get(each.name)]
        with needed(store, faults, "away")():
            for call in _calls(store):
                with in_time(_STALL_S), pytest.raises(CheckpointError) as caught:
                    call()
                assert not [each for each in secrets if each in str(caught.value)]
        assert [each.name for each in store.list("words")] == ["words/run/task-1"]
        assert store.load("words/run/task-1") == b"state"
        store.store("words/run/task-2", b"state")

    def test_a_store_that_finds_no_space_leaves_the_former_object(self, store: CheckpointStore, faults: Faults) -> None:
        """The checkpoint fails; those before it can still be restored, and the next one succeeds."""
        full = needed(store, faults, "full")
        store.store("words/run/task-1", b"former")
        for name in ("words/run/task-1", "words/run/task-2"):
            with full(), pytest.raises(CheckpointError, match=name.rpartition("/")[2]):
                store.store(name, bytes(2 * FULL_BYTES))
        assert [(each.name, each.size_bytes) for each in store.list("words")] == [("words/run/task-1", 6)]
        assert store.load("words/run/task-1") == b"former"
        store.store("words/run/task-2", bytes(2 * FULL_BYTES))

    def test_a_silent_store_is_given_up_in_time(
        self, store: CheckpointStore, options: dict[str, object], faults: Faults
    ) -> None:
        """Each call fails after at most 30 s without progress; a task that hangs in it would never restore."""
        store.store("words/run/task-1", b"state")
        with needed(store, faults, "silent")(), in_time(_STALL_S), ThreadPoolExecutor() as threads:
            calls = [_calls(self.opened(options))[number] for number in range(len(_calls(store)))]
            results = [threads.submit(call) for call in calls]
            assert [isinstance(each.exception(), CheckpointError) for each in results] == [True] * len(calls)

    def test_a_store_whose_answer_is_lost_can_be_repeated(self, store: CheckpointStore, faults: Faults) -> None:
        """The outcome is unknown then: the object is absent or whole. A second store puts it there."""
        data = pattern(1, _LARGE_BYTES)
        with needed(store, faults, "answers_lost")(), in_time(_STALL_S), contextlib.suppress(CheckpointError):
            store.store("words/run/task-1", data)
        assert {each.size_bytes for each in store.list("words")} <= {_LARGE_BYTES}
        store.store("words/run/task-1", data)
        assert store.load("words/run/task-1") == data

    @contextmanager
    def _storing(
        self, options: dict[str, object], action: str, name: str, number: int
    ) -> Iterator[subprocess.Popen[str]]:
        """A second process that stores; it is killed at the end if it still runs."""
        command = second_process(self.family, self.driver_class, options, action, name, str(number))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()


def _calls(store: CheckpointStore) -> tuple[Callable[[], object], ...]:
    """Return a call of each method, for an object that exists."""
    return (
        lambda: store.store("words/run/task-2", b"state"),
        lambda: store.load("words/run/task-1"),
        lambda: store.load("words/run/task-1", 1, 2),
        lambda: store.list("words"),
        lambda: store.dispose(["words/run/task-1"]),
    )


def _assert_whole(data: bytes) -> None:
    assert len(data) == _LARGE_BYTES
    assert data == data[:1] * _LARGE_BYTES, "a mixture of two stores"
