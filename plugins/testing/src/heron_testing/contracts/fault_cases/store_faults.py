"""The faults of the suite of view stores: killed and racing processes, and a server that is away or silent."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from heron.errors import StoreError
from heron.spi.options import option_fields
from heron.spi.store import Batch, ViewStore
from heron_testing.contracts.driver import DriverContract, in_time, needed
from heron_testing.contracts.parts.second_process import second_process
from heron_testing.contracts.parts.store_writers import KEYS, SPAN_US, seen, total
from heron_testing.faults import Faults

__all__ = ["ViewStoreFaultCases"]

_CALL_S = 30.0  # the contract's limit
_STEPS = 60
_KILLS = 4
_NEVER = 10**9  # a version that no second process reaches


class ViewStoreFaultCases(DriverContract):
    """Part of `heron_testing.contracts.store.ViewStoreContract`."""

    family = "store"

    @pytest.fixture
    def store(self, options: dict[str, object]) -> ViewStore:
        """The driver under test."""
        return self.opened(options)

    def opened(self, options: dict[str, object]) -> ViewStore:
        """Open the driver, as each process does."""
        driver = self.driver_class.open(options)
        assert isinstance(driver, ViewStore)
        return driver

    def test_another_process_finds_what_was_written(
        self, store: ViewStore, options: dict[str, object], view: str
    ) -> None:
        """The next incarnation of a task publishes what the former one staged; the driver object keeps no state."""
        store.stage(view, 0, 1, {(0, b"key"): b"live"})
        store.stage_batch(view, Batch(0, "run"), 0, {b"key": b"history"})
        other = self.opened(options)
        other.publish(view, 0, 1, 7)
        other.publish_batch(view, Batch(0, "run"), 0, 1)
        found = seen(self.opened(options), view, [b"key"])
        assert (found.history, found.live, found.live_at_us) == ({b"key": b"history"}, {b"key": [b"live"]}, 7)

    def test_a_reading_is_of_one_instant(self, store: ViewStore, options: dict[str, object], view: str) -> None:
        """Between the step that adds a span and the one that moves it into history, each span counts exactly once."""
        counted = [0]
        with self._writing(options, "steps", view, _STEPS) as process:
            while process.poll() is None:
                counted.append(total(seen(store, view, KEYS)))
            assert process.returncode == 0
        assert counted == sorted(counted), "a later reading is older"
        assert total(seen(store, view, KEYS)) == _STEPS

    def test_writers_do_not_disturb_each_other(self, store: ViewStore, options: dict[str, object], view: str) -> None:
        """All tasks of a topology publish at the same checkpoint, while a batch becomes visible."""
        with contextlib.ExitStack() as stack:
            actions = ("writer-0", "writer-1")
            processes = [stack.enter_context(self._writing(options, each, view, _STEPS)) for each in actions]
            for number in range(_STEPS // 3):
                batch = Batch((number - _STEPS) * SPAN_US, "run")
                store.stage_batch(view, batch, 0, {b"key": b"%d" % number})
                store.publish_batch(view, batch, 0, 1)
            assert [each.wait() for each in processes] == [0, 0]
        keys = [b"%d-%s" % (writer, key) for writer in (0, 1) for key in KEYS]
        found = seen(store, view, [*keys, b"key"])
        assert found.live == {key: [b"%d" % _STEPS] for key in keys}
        assert found.history == {b"key": b"%d" % (_STEPS // 3 - 1)}
        assert found.live_at_us == _STEPS

    @pytest.mark.parametrize("action", ["stage-on", "publish-on"])
    def test_a_writer_killed_in_the_middle_leaves_all_or_nothing(
        self, store: ViewStore, options: dict[str, object], view: str, action: str
    ) -> None:
        """After SIGKILL at any moment, what is shown later belongs to one version."""
        version = 1
        for _ in range(_KILLS):
            with self._writing(options, action, view, version) as process:
                # Versions that appear say that the process is in the middle of its work.
                self._until_newer(store, view, version, process, publishes=action == "stage-on")
                process.kill()
            store.publish(view, 0, _NEVER, 1)
            found = seen(store, view, KEYS)
            assert len({tuple(each) for each in found.live.values()}) == 1, "a mixture of two versions"
            assert set(found.live) == set(KEYS)
            version = int(found.live[KEYS[0]][0][:8]) + 1

    def test_a_batch_killed_in_the_middle_leaves_the_former_one(
        self, store: ViewStore, options: dict[str, object], view: str
    ) -> None:
        """After SIGKILL at any moment, one batch is visible as a whole."""
        first = 1
        for _ in range(_KILLS):
            with self._writing(options, "batch-on", view, first) as process:
                while (seen(store, view, KEYS[:1]).until_us or 0) < (first + 1) * SPAN_US:
                    assert process.poll() is None, "the second process failed"
                process.kill()
            found = seen(store, view, KEYS)
            assert found.until_us is not None
            assert set(found.history) == set(KEYS)
            assert {int(each[:8]) * SPAN_US for each in found.history.values()} == {found.until_us}
            first = found.until_us // SPAN_US + 1

    def test_a_server_that_is_away_is_an_error_and_comes_back(
        self, store: ViewStore, options: dict[str, object], faults: Faults, view: str
    ) -> None:
        """A checkpoint fails and the topology goes on; the next one succeeds. No error shows a secret."""
        store.stage(view, 0, 1, {(0, b"key"): b"1"})
        store.publish(view, 0, 1, 1)
        fields = option_fields(self.driver_class.options_type)
        secrets = [str(options[each.name]) for each in fields if each.secret and options.get(each.name)]
        with needed(store, faults, "away")():
            for call in _calls(store, view):
                with in_time(_CALL_S), pytest.raises(StoreError) as caught:
                    call()
                assert not [each for each in secrets if each in str(caught.value)]
        assert seen(store, view, [b"key"]).live == {b"key": [b"1"]}
        store.stage(view, 0, 2, {(0, b"key"): b"2"})
        store.publish(view, 0, 2, 2)
        assert seen(store, view, [b"key"]).live == {b"key": [b"2"]}

    def test_a_silent_server_is_given_up_in_time(
        self, store: ViewStore, options: dict[str, object], faults: Faults, view: str
    ) -> None:
        """Each call fails after at most 30 s; a task that hangs in it would never restore."""
        store.stage(view, 0, 1, {(0, b"key"): b"1"})
        stores = [self.opened(options) for _ in _calls(store, view)]
        for each in stores:
            each.read(view, [b"key"])  # it has a connection, which becomes silent
        with needed(store, faults, "silent")(), in_time(_CALL_S), ThreadPoolExecutor(len(stores)) as threads:
            results = [threads.submit(_calls(each, view)[number]) for number, each in enumerate(stores)]
            assert [isinstance(each.exception(), StoreError) for each in results] == [True] * len(results)

    def test_a_call_whose_answer_is_lost_can_be_repeated(self, store: ViewStore, faults: Faults, view: str) -> None:
        """The outcome is unknown then; a repetition makes it certain."""
        for number, call in enumerate(_calls(store, view)):
            if number < 2:  # `answers_lost` costs the time limit of the driver
                with needed(store, faults, "answers_lost")(), in_time(_CALL_S), contextlib.suppress(StoreError):
                    call()
            call()
        assert seen(store, view, [b"key"]).live == {}

    @contextmanager
    def _writing(
        self, options: dict[str, object], action: str, view: str, number: int
    ) -> Iterator[subprocess.Popen[str]]:
        """A second process that writes; it is killed at the end if it still runs."""
        command = second_process(self.family, self.driver_class, options, action, view, str(number))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
                yield process
            finally:
                process.kill()

    def _until_newer(
        self, store: ViewStore, view: str, version: int, process: subprocess.Popen[str], *, publishes: bool
    ) -> None:
        """Read until values of a version above this one are shown; every reading has one version."""
        while True:
            assert process.poll() is None, "the second process failed"
            if publishes:
                store.publish(view, 0, _NEVER, 1)
            found = {tuple(each) for each in seen(store, view, KEYS).live.values()}
            assert len(found) <= 1, "a mixture of two versions"
            if found and int(found.pop()[0][:8]) > version:
                return


def _calls(store: ViewStore, view: str) -> tuple[Callable[[], object], ...]:
    """Return a call of each method; in this order they leave no values."""
    batch = Batch(SPAN_US, "run")
    return (
        lambda: store.stage(view, 0, 9, {(0, b"key"): b"9"}),
        lambda: store.publish(view, 0, 9, 9),
        lambda: store.discard(view, 0, 9),
        lambda: store.retire(view, 1, 9),
        lambda: store.stage_batch(view, batch, 0, {b"key": b"9"}),
        lambda: store.publish_batch(view, batch, 0, 1),
        lambda: store.read(view, [b"key"]),
        lambda: store.keys(view),
        lambda: store.drop(view),
    )
