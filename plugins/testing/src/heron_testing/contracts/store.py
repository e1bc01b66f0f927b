"""The contract suite of stores of views."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test

from heron.errors import StoreError
from heron.spi.store import Batch, Reading, ViewStore
from heron_testing.contracts.fault_cases.store_faults import ViewStoreFaultCases
from heron_testing.contracts.parts.store_model import ViewStoreMachine
from heron_testing.contracts.parts.store_writers import seen

__all__ = ["ViewStoreCases", "ViewStoreContract"]

_KEY = b"key"
_MIB = 1024 * 1024
_NAMES = ["", "a b", "a/b", "..", "a.b", "wörter", "a\0", "a\n", "a'b", "{a}", "v" * 101]
_RUNS = ["", "a b", "a/b", "läufe", "a\n", "r" * 65]
_MANY = 2500  # more keys than drivers send at a time
_MODEL_RUNS = 40
_MODEL_STEPS = 30


class ViewStoreCases:
    """The cases for one store in one process; subclasses override the fixture `store`."""

    @pytest.fixture
    def store(self) -> ViewStore:
        """The store under test."""
        raise NotImplementedError

    @pytest.fixture
    def view(self, store: ViewStore) -> Iterator[str]:
        """A view for each test, since a server serves them all."""
        name = f"view_{secrets.token_hex(8)}"
        yield name
        store.drop(name)

    # --- live values

    def test_a_view_that_does_not_exist_has_no_values(self, store: ViewStore, view: str) -> None:
        """A reader may start before any writer."""
        assert seen(store, view, [_KEY]) == Reading(None, {}, {}, None)
        assert seen(store, view, []) == Reading(None, {}, {}, None)
        assert store.keys(view) == []
        store.drop(view)

    def test_staged_values_are_invisible(self, store: ViewStore, view: str) -> None:
        """Their checkpoint may fail."""
        store.stage(view, 0, 1, {(0, _KEY): b"1"})
        assert seen(store, view, [_KEY]) == Reading(None, {}, {}, None)
        assert store.keys(view) == []

    def test_publish_shows_all_versions_up_to_this_one(self, store: ViewStore, view: str) -> None:
        """A checkpoint may complete after the next one was staged; and several may be published at once."""
        for version in (1, 2, 3):
            store.stage(view, 0, version, {(0, _KEY): b"%d" % version, (0, b"only-%d" % version): b"%d" % version})
        store.publish(view, 0, 2, 5)
        assert _live(store, view, _KEY, b"only-1", b"only-2", b"only-3") == {
            _KEY: [b"2"],
            b"only-1": [b"1"],
            b"only-2": [b"2"],
        }
        store.publish(view, 0, 3, 6)
        assert _live(store, view, _KEY, b"only-3") == {_KEY: [b"3"], b"only-3": [b"3"]}

    def test_publish_shows_the_values_of_this_writer_alone(self, store: ViewStore, view: str) -> None:
        """Another task may not have learned yet that the checkpoint is complete; its number may begin alike."""
        for writer in (1, 11, 0):
            store.stage(view, writer, 1, {(0, b"%d" % writer): b"x"})
        store.publish(view, 1, 1, 5)
        assert store.keys(view) == [b"1"]

    def test_the_last_value_that_was_staged_counts(self, store: ViewStore, view: str) -> None:
        """A task that died after its call stages the checkpoint again. Other keys of the first call stay."""
        store.stage(view, 0, 1, {(0, _KEY): b"first", (0, b"other"): b"first"})
        store.stage(view, 0, 1, {(0, _KEY): b"second"})
        store.publish(view, 0, 1, 5)
        assert _live(store, view, _KEY, b"other") == {_KEY: [b"second"], b"other": [b"first"]}

    def test_discard_removes_what_is_above(self, store: ViewStore, view: str) -> None:
        """A restarted topology counts again what followed its checkpoint; what is published stays."""
        for writer in (0, 1):
            for version in (1, 2, 3):
                store.stage(view, writer, version, {(0, b"%d-%d" % (writer, version)): b"x"})
        store.publish(view, 0, 1, 5)
        store.discard(view, 0, 2)
        store.discard(view, 0, 2)
        store.publish(view, 0, 9, 5)
        assert store.keys(view) == [b"0-1", b"0-2"]
        store.publish(view, 1, 9, 5)
        assert store.keys(view) == [b"0-1", b"0-2", b"1-1", b"1-2", b"1-3"]

    def test_an_older_version_never_replaces_a_newer_one(self, store: ViewStore, view: str) -> None:
        """A key has moved from writer 1 to writer 0, and writer 1 publishes late."""
        store.stage(view, 1, 9, {(0, _KEY): b"older", (10, _KEY): b"of another span"})
        store.stage(view, 0, 10, {(0, _KEY): b"newer"})
        store.publish(view, 0, 10, 5)
        store.publish(view, 1, 9, 5)
        assert _live(store, view, _KEY) == {_KEY: [b"newer", b"of another span"]}
        store.stage(view, 1, 10, {(0, _KEY): b"equal"})
        store.publish(view, 1, 10, 5)
        assert _live(store, view, _KEY) == {_KEY: [b"equal", b"of another span"]}

    def test_publish_notes_the_time_of_each_writer(self, store: ViewStore, view: str) -> None:
        """The age of an answer is that of the writer that is furthest behind, also if it had nothing to write."""
        store.publish(view, 0, 1, 100)
        assert seen(store, view, []).live_at_us == 100
        store.publish(view, 1, 1, 50)
        assert seen(store, view, [_KEY]).live_at_us == 50
        store.publish(view, 1, 2, 200)
        assert seen(store, view, [_KEY]).live_at_us == 100
        store.publish(view, 1, 1, 50)  # a repetition that was late
        assert seen(store, view, [_KEY]).live_at_us == 100
        assert store.keys(view) == []

    def test_a_repeated_publish_changes_nothing(self, store: ViewStore, view: str) -> None:
        """Its answer may have been lost, or the dead process still finishes it."""
        store.stage(view, 0, 1, {(0, _KEY): b"1"})
        store.publish(view, 0, 1, 5)
        store.stage(view, 0, 2, {(0, _KEY): b"2"})
        before = seen(store, view, [_KEY])
        store.publish(view, 0, 1, 5)
        store.stage(view, 0, 1, {(0, _KEY): b"1"})
        assert seen(store, view, [_KEY]) == before
        store.publish(view, 0, 2, 6)
        store.stage(view, 0, 1, {(0, _KEY): b"1"})
        store.publish(view, 0, 2, 6)
        assert _live(store, view, _KEY) == {_KEY: [b"2"]}

    @pytest.mark.parametrize(("version", "shown"), [(0, []), (2, [b"2-1", b"2-2", b"3-1", b"3-2"])])
    def test_retire_shows_or_removes_what_writers_left(
        self, store: ViewStore, view: str, version: int, shown: list[bytes]
    ) -> None:
        """After a change of parallelism the remaining tasks go on from a checkpoint of more tasks."""
        for writer in (0, 2, 3):
            for staged in (1, 2, 3):
                store.stage(view, writer, staged, {(0, b"%d-%d" % (writer, staged)): b"x"})
        store.retire(view, 1, version)
        store.retire(view, 1, version)
        assert store.keys(view) == shown
        store.publish(view, 3, 9, 5)
        assert store.keys(view) == shown
        store.publish(view, 0, 9, 5)
        assert store.keys(view) == [b"0-1", b"0-2", b"0-3", *shown]

    def test_retire_forgets_the_times(self, store: ViewStore, view: str) -> None:
        """A task that no longer exists must not make every answer old."""
        for writer in (0, 1, 10):
            store.publish(view, writer, 1, 100 - writer)
        store.retire(view, 2, 1)
        assert seen(store, view, []).live_at_us == 99
        store.retire(view, 0, 1)
        assert seen(store, view, []).live_at_us is None

    def test_live_values_are_in_the_order_of_their_spans(self, store: ViewStore, view: str) -> None:
        """Some monoids are not commutative: first, last. Spans before 1970 come first."""
        spans = [-3_000_000, -1, 0, 9, 10, 100, 1_700_000_000_000_000]
        for version, span_us in enumerate(reversed(spans), start=1):
            store.stage(view, 0, version, {(span_us, _KEY): b"%d" % span_us})
        store.publish(view, 0, 99, 5)
        assert _live(store, view, _KEY) == {_KEY: [b"%d" % each for each in spans]}

    # --- batches

    def test_a_batch_is_invisible_until_its_last_part(self, store: ViewStore, view: str) -> None:
        """The calls for a part add up; parts complete in any order, and a repeated one counts once."""
        batch = Batch(20, "run")
        store.stage(view, 0, 1, {(span_us, _KEY): b"%d" % span_us for span_us in (0, 10, 20, 30)})
        store.publish(view, 0, 1, 5)
        for part in (0, 1, 2):
            store.stage_batch(view, batch, part, {b"a%d" % part: b"first", b"b%d" % part: b"first"})
            store.stage_batch(view, batch, part, {b"b%d" % part: b"second", b"c%d" % part: b"first"})
        before = seen(store, view, [_KEY, b"a0"])
        for part in (2, 0, 2, 0):
            store.publish_batch(view, batch, part, 3)
            assert seen(store, view, [_KEY, b"a0"]) == before
        store.publish_batch(view, batch, 1, 3)
        found = seen(store, view, [_KEY, b"a0", b"b1", b"c2", b"d"])
        assert (found.until_us, found.live_at_us) == (20, 5)
        assert found.history == {b"a0": b"first", b"b1": b"second", b"c2": b"first"}
        assert found.live == {_KEY: [b"20", b"30"]}

    def test_a_batch_without_values_covers_spans_too(self, store: ViewStore, view: str) -> None:
        """Every element may have been removed from the history."""
        store.stage(view, 0, 1, {(0, _KEY): b"x"})
        store.publish(view, 0, 1, 5)
        store.publish_batch(view, Batch(10, "run"), 0, 1)
        assert seen(store, view, [_KEY]) == Reading(10, {}, {}, 5)
        assert store.keys(view) == []

    def test_a_batch_replaces_the_former_one(self, store: ViewStore, view: str) -> None:
        """Keys that the new one does not have are gone."""
        _show(store, view, Batch(10, "run"), {b"a": b"1", b"b": b"1"})
        _show(store, view, Batch(20, "run"), {b"b": b"2", b"c": b"2"})
        found = seen(store, view, [b"a", b"b", b"c"])
        assert (found.until_us, found.history) == (20, {b"b": b"2", b"c": b"2"})
        assert store.keys(view) == [b"b", b"c"]

    def test_another_run_with_the_same_end_replaces_the_visible_one(self, store: ViewStore, view: str) -> None:
        """A night is computed again after a repair. A late call of the first run changes nothing."""
        first, second = Batch(10, "first"), Batch(10, "second")
        _show(store, view, first, {b"a": b"1"})
        _show(store, view, second, {b"b": b"2"})
        assert seen(store, view, [b"a", b"b"]).history == {b"b": b"2"}
        with pytest.raises(StoreError, match="first"):
            store.stage_batch(view, first, 0, {b"a": b"1"})
        with pytest.raises(StoreError, match="first"):
            store.publish_batch(view, first, 0, 1)
        assert seen(store, view, [b"a", b"b"]).history == {b"b": b"2"}

    def test_calls_after_a_batch_became_visible_change_nothing(self, store: ViewStore, view: str) -> None:
        """The engine of the batch may run a part twice."""
        batch = Batch(10, "run")
        _show(store, view, batch, {b"a": b"1"})
        store.stage_batch(view, batch, 0, {b"a": b"late", b"b": b"late"})
        store.publish_batch(view, batch, 0, 1)
        assert seen(store, view, [b"a", b"b"]).history == {b"a": b"1"}
        assert store.keys(view) == [b"a"]

    def test_an_older_batch_is_refused_with_both_ends(self, store: ViewStore, view: str) -> None:
        """A job that hung since yesterday must not bring yesterday's history back."""
        older = Batch(1_000, "run")
        store.stage_batch(view, older, 0, {b"a": b"older"})
        _show(store, view, Batch(2_000, "run"), {b"a": b"newer"})
        with pytest.raises(StoreError, match=rf"{view}.*1000.*2000"):
            store.publish_batch(view, older, 0, 1)
        with pytest.raises(StoreError, match=rf"{view}.*1000.*2000"):
            store.stage_batch(view, older, 1, {b"a": b"older"})
        assert seen(store, view, [b"a"]).history == {b"a": b"newer"}

    def test_a_batch_removes_older_ones_that_are_not_visible(self, store: ViewStore, view: str) -> None:
        """Runs that failed would otherwise fill the store. A later one may be on its way, and stays."""
        same, later = Batch(20, "failed"), Batch(30, "run")
        for batch in (same, later):
            store.stage_batch(view, batch, 0, {b"a": batch.run.encode()})
            store.publish_batch(view, batch, 0, 2)
        _show(store, view, Batch(20, "run"), {b"a": b"visible"})
        with pytest.raises(StoreError, match="failed"):
            store.publish_batch(view, same, 1, 2)
        assert seen(store, view, [b"a"]).history == {b"a": b"visible"}
        store.publish_batch(view, later, 1, 2)
        assert seen(store, view, [b"a"]).history == {b"a": b"run"}

    def test_a_live_value_of_a_covered_span_stays_invisible(self, store: ViewStore, view: str) -> None:
        """The live side learns nothing of batches; the element would count twice."""
        store.stage(view, 0, 1, {(0, b"staged"): b"x", (10, b"shown"): b"x"})
        _show(store, view, Batch(10, "run"), {})
        store.publish(view, 0, 1, 5)
        store.stage(view, 0, 2, {(0, b"late"): b"x"})
        store.retire(view, 0, 2)
        assert _live(store, view, b"staged", b"late", b"shown") == {b"shown": [b"x"]}
        assert store.keys(view) == [b"shown"]

    # --- keys, values, views

    @pytest.mark.parametrize("key", [b"\0", b"\xff" * 1024, b"a\0b", b"{}%s'\"\\\n", "schlüssel".encode()], ids=len)
    def test_a_key_is_any_bytes(self, store: ViewStore, view: str, key: bytes) -> None:
        """Keys are encoded values of programs."""
        store.stage(view, 0, 1, {(0, key): b"live"})
        store.publish(view, 0, 1, 5)
        _show(store, view, Batch(0, "run"), {key: b"history"})
        assert seen(store, view, [key]) == Reading(0, {key: b"history"}, {key: [b"live"]}, 5)
        assert store.keys(view) == [key]

    @pytest.mark.parametrize("key", [b"", b"k" * 1025], ids=len)
    def test_a_key_that_is_none_is_refused(self, store: ViewStore, view: str, key: bytes) -> None:
        """Databases have limits for keys of an index; nothing of the call is kept."""
        for call in (
            lambda: store.stage(view, 0, 1, {(0, _KEY): b"x", (0, key): b"x"}),
            lambda: store.stage_batch(view, Batch(0, "run"), 0, {_KEY: b"x", key: b"x"}),
            lambda: store.read(view, [_KEY, key]),
        ):
            with pytest.raises(StoreError, match=f"{len(key)} bytes"):
                call()
        store.publish(view, 0, 1, 5)
        store.publish_batch(view, Batch(0, "run"), 0, 1)
        assert store.keys(view) == []

    @pytest.mark.parametrize("size", [0, 1, 5 * _MIB + 3, 16 * _MIB])
    def test_a_value_has_up_to_16_mib(self, store: ViewStore, view: str, size: int) -> None:
        """A value may be a sketch, or a list of the best."""
        value = (bytes(range(251)) * (size // 251 + 1))[:size]
        store.stage(view, 0, 1, {(0, _KEY): value})
        store.publish(view, 0, 1, 5)
        _show(store, view, Batch(0, "run"), {_KEY: value})
        found = seen(store, view, [_KEY])
        assert found.history[_KEY] == value
        assert list(found.live[_KEY]) == [value]

    def test_a_value_above_16_mib_is_refused(self, store: ViewStore, view: str) -> None:
        """It would be near the limits of servers."""
        with pytest.raises(StoreError, match="16777216 bytes"):
            store.stage(view, 0, 1, {(0, _KEY): bytes(16 * _MIB + 1)})
        with pytest.raises(StoreError, match="16777216 bytes"):
            store.stage_batch(view, Batch(0, "run"), 0, {_KEY: bytes(16 * _MIB + 1)})

    @pytest.mark.parametrize("name", _NAMES)
    def test_a_name_that_is_none_is_refused(self, store: ViewStore, name: str) -> None:
        """Names come from people; none may lead out of the place of the store."""
        for call in (
            lambda: store.stage(name, 0, 1, {}),
            lambda: store.publish(name, 0, 1, 1),
            lambda: store.discard(name, 0, 1),
            lambda: store.retire(name, 0, 1),
            lambda: store.stage_batch(name, Batch(0, "run"), 0, {}),
            lambda: store.publish_batch(name, Batch(0, "run"), 0, 1),
            lambda: store.read(name, []),
            lambda: store.keys(name),
            lambda: store.drop(name),
        ):
            with pytest.raises(StoreError, match="view"):
                call()

    @pytest.mark.parametrize("run", _RUNS)
    def test_a_run_that_is_none_is_refused(self, store: ViewStore, view: str, run: str) -> None:
        """It becomes part of names, as the view does."""
        with pytest.raises(StoreError, match="run"):
            store.stage_batch(view, Batch(0, run), 0, {})
        with pytest.raises(StoreError, match="run"):
            store.publish_batch(view, Batch(0, run), 0, 1)

    def test_the_longest_names(self, store: ViewStore, view: str) -> None:
        """A store that shortens them would mix views."""
        longest = f"{view}{'_-Z9' * 25}"[:100]
        _show(store, longest, Batch(0, "r" * 64), {_KEY: b"x"})
        assert store.keys(longest) == [_KEY]
        assert store.keys(longest[:-1]) == []
        store.drop(longest)

    def test_keys_come_in_pages_over_history_and_live_values(self, store: ViewStore, view: str) -> None:
        """In the order of bytes, each once."""
        live = [b"\0", b"\0\0", b"B", b"a", b"b", b"\xff", b"\xff\xff"]
        history = [b"\1", b"a", b"a\0", b"aa", b"\xfe", b"\xff\xff"]
        store.stage(view, 0, 1, {(span_us, key): b"x" for key in live for span_us in (10, 20)})
        store.stage(view, 0, 1, {(0, b"covered"): b"x"})
        store.publish(view, 0, 1, 5)
        _show(store, view, Batch(10, "run"), dict.fromkeys(history, b"x"))
        store.stage(view, 0, 2, {(10, b"staged"): b"x"})
        every = sorted({*live, *history})
        assert store.keys(view) == every
        for limit in (1, 2, 5, len(every)):
            found: list[bytes] = []
            while page := store.keys(view, found[-1] if found else b"", limit):
                assert len(page) == min(limit, len(every) - len(found))
                found += page
            assert found == every
        assert store.keys(view, b"aaa") == [b"b", b"\xfe", b"\xff", b"\xff\xff"]

    def test_many_values_at_once(self, store: ViewStore, view: str) -> None:
        """More than a request of a driver may have."""
        values = {b"key-%04d" % number: b"%d" % number * 100 for number in range(_MANY)}
        store.stage(view, 0, 1, {(0, key): value for key, value in values.items()})
        store.publish(view, 0, 1, 5)
        _show(store, view, Batch(0, "run"), values)
        found = seen(store, view, iter([*values, b"missing"]))
        assert found.history == values
        assert found.live == {key: [value] for key, value in values.items()}
        assert store.keys(view, limit=_MANY + 1) == sorted(values)

    def test_views_do_not_mix(self, store: ViewStore, view: str) -> None:
        """Several applications share a server; names begin alike."""
        other = f"{view}-1"
        for name in (view, other):
            store.stage(name, 0, 1, {(0, _KEY): name.encode()})
            _show(store, name, Batch(-10 if name == view else -20, "run"), {_KEY: name.encode()})
        store.publish(view, 0, 1, 5)
        assert seen(store, other, [_KEY]) == Reading(-20, {_KEY: other.encode()}, {}, None)
        store.publish(other, 0, 1, 6)
        store.drop(view)
        assert seen(store, view, [_KEY]) == Reading(None, {}, {}, None)
        assert seen(store, other, [_KEY]) == Reading(-20, {_KEY: other.encode()}, {_KEY: [other.encode()]}, 6)
        store.drop(other)

    def test_drop_removes_all(self, store: ViewStore, view: str) -> None:
        """A view with the same name starts from nothing; older batches and versions count again."""
        store.stage(view, 0, 9, {(0, _KEY): b"x"})
        store.publish(view, 0, 9, 5)
        store.stage(view, 0, 10, {(0, _KEY): b"staged"})
        _show(store, view, Batch(10, "run"), {_KEY: b"x"})
        store.publish_batch(view, Batch(20, "run"), 0, 2)
        store.drop(view)
        store.drop(view)
        assert seen(store, view, [_KEY]) == Reading(None, {}, {}, None)
        assert store.keys(view) == []
        store.publish(view, 0, 10, 1)
        store.publish_batch(view, Batch(20, "run"), 1, 2)
        assert seen(store, view, [_KEY]) == Reading(None, {}, {}, 1)
        store.stage(view, 0, 1, {(0, _KEY): b"new"})
        store.publish(view, 0, 1, 1)
        _show(store, view, Batch(0, "run"), {_KEY: b"new"})
        assert seen(store, view, [_KEY]) == Reading(0, {_KEY: b"new"}, {_KEY: [b"new"]}, 1)

    def test_random_calls_have_the_effects_of_the_model(self, store: ViewStore) -> None:
        """`heron_testing.memory_views.MemoryViewStore` is the model; all answers are compared after each call."""

        class Machine(ViewStoreMachine):
            pass

        Machine.store = store
        run_state_machine_as_test(
            Machine,
            settings=hypothesis.settings(
                max_examples=_MODEL_RUNS,
                stateful_step_count=_MODEL_STEPS,
                deadline=None,
                derandomize=True,
                database=None,
            ),
        )


class ViewStoreContract(ViewStoreCases, ViewStoreFaultCases):
    """Subclass it with the attributes of `DriverContract` and the fixtures `options` and `faults`."""

    @pytest.fixture
    def store(self, options: dict[str, object]) -> ViewStore:
        """The driver under test."""
        return self.opened(options)


def _live(store: ViewStore, view: str, *keys: bytes) -> dict[bytes, list[bytes]]:
    return {key: list(values) for key, values in store.read(view, keys).live.items()}


def _show(store: ViewStore, view: str, batch: Batch, values: dict[bytes, bytes]) -> None:
    store.stage_batch(view, batch, 0, values)
    store.publish_batch(view, batch, 0, 1)
