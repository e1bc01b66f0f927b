"""Random calls of a store of views and of the store in memory: both must give the same answers."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from heron.errors import StoreError
from heron.spi.store import Batch, ViewStore
from heron_testing.contracts.parts.store_writers import seen
from heron_testing.memory_views import MemoryViewStore

__all__ = ["ViewStoreMachine"]

_WRITERS = 3
_PARTS = 2
_KEYS = (b"\0", b"a", b"a\0", b"b", b"\xff", b"\xff\xff")
_SPANS_US = (-20, 0, 20, 40)

_versions = st.integers(1, 4)
_writers = st.integers(0, _WRITERS - 1)
_batches = st.builds(Batch, st.sampled_from((0, 20, 40)), st.sampled_from(("a", "b")))
_numbers = st.sets(st.integers(0, len(_KEYS) - 1), min_size=1)
_spans = st.sampled_from(_SPANS_US)


class ViewStoreMachine(RuleBasedStateMachine):
    """Subclass it with the store under test as `store`. Each run has a new view."""

    store: ViewStore

    def __init__(self) -> None:
        super().__init__()
        self.view = f"model-{secrets.token_hex(8)}"
        self.model = MemoryViewStore()
        self.value = 0

    @rule(version=_versions, writer=_writers, span_us=_spans, numbers=_numbers)
    def stage(self, version: int, writer: int, span_us: int, numbers: set[int]) -> None:
        """With each version, a key belongs to another writer, as after a change of parallelism."""
        owned = {_KEYS[each] for each in numbers if (each + version) % _WRITERS == writer}
        values = {(span_us, key): self._next() for key in sorted(owned)}
        self._both(lambda store: store.stage(self.view, writer, version, values))

    @rule(version=_versions, writer=_writers, at_us=st.integers(0, 99))
    def publish(self, version: int, writer: int, at_us: int) -> None:
        """Times may go back, as clocks do."""
        self._both(lambda store: store.publish(self.view, writer, version, at_us))

    @rule(writer=_writers, above=st.integers(0, 4))
    def discard(self, writer: int, above: int) -> None:
        """As after a restart."""
        self._both(lambda store: store.discard(self.view, writer, above))

    @rule(writers=st.integers(0, _WRITERS), version=st.integers(0, 4))
    def retire(self, writers: int, version: int) -> None:
        """As after a change of parallelism."""
        self._both(lambda store: store.retire(self.view, writers, version))

    @rule(batch=_batches, part=st.integers(0, _PARTS - 1), numbers=_numbers)
    def stage_batch(self, batch: Batch, part: int, numbers: set[int]) -> None:
        """The parts have different keys."""
        values = {_KEYS[each]: self._next() for each in sorted(numbers) if each % _PARTS == part}
        self._both(lambda store: store.stage_batch(self.view, batch, part, values))

    @rule(batch=_batches, part=st.integers(0, _PARTS - 1))
    def publish_batch(self, batch: Batch, part: int) -> None:
        """The last part shows the batch."""
        self._both(lambda store: store.publish_batch(self.view, batch, part, _PARTS))

    @rule(certain=st.sampled_from((False, False, False, True)))
    def drop(self, certain: bool) -> None:
        """Seldom: it makes the rest of a run short."""
        if certain:
            self._both(lambda store: store.drop(self.view))

    @invariant()
    def both_show_the_same(self) -> None:
        """All that readers can ask for."""
        assert seen(self.store, self.view, _KEYS) == self.model.read(self.view, _KEYS)
        assert self.store.keys(self.view, b"a", 3) == self.model.keys(self.view, b"a", 3)

    def teardown(self) -> None:
        """Leave nothing."""
        self.store.drop(self.view)

    def _next(self) -> bytes:
        self.value += 1
        return b"%d" % self.value

    def _both(self, call: Callable[[ViewStore], None]) -> None:
        refused = []
        for store in (self.model, self.store):
            try:
                call(store)
                refused.append(False)
            except StoreError:
                refused.append(True)
        assert refused[0] == refused[1], f"refused by the model: {refused[0]}, by the store: {refused[1]}"
