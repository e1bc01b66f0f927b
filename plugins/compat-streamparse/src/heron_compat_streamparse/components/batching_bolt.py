"""Bolts that process tuples in batches: at ticks, or at a period of their own.

A batch leaves the bolt when `process_batch` has ended, so an exception fails the tuples of one batch. The batches that
have not had their turn wait for the next tick, or have it at once when no more tuples come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

from heron_compat_streamparse.components.bolt import Bolt
from heron_compat_streamparse.hosting.tuples import Tuple
from heron_compat_streamparse.specs.foreign import ForeignKind, ForeignRuntime
from heron_compat_streamparse.specs.spec import ComponentSpec, Inputs, Par

__all__ = ["BatchingBolt", "TicklessBatchingBolt"]


class BatchingBolt(Bolt):
    """A bolt that collects tuples until ticks have come: implement `process_batch`.

    Attributes:
        ticks_between_batches: the batches are processed at the first tick after this number of ticks.
    """

    ticks_between_batches: int = 1

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._batches: defaultdict[Hashable, list[Tuple]] = defaultdict(list)
        self._tick_counter = 0
        self._current_key: Hashable = None

    def group_key(self, tup: Tuple) -> Hashable:
        """Return the key of the batch that a tuple belongs to; by default all are in one."""
        return None

    def process_batch(self, key: Hashable, tups: list[Tuple]) -> None:
        """Process the tuples of a key. Emits are anchored to all of them, and all are acked afterwards."""
        raise NotImplementedError

    def process_batches(self) -> None:
        """Process and ack all batches."""
        for key in list(self._batches):
            batch = self._batches[key]
            self._current_tups, self._current_key = batch, key
            self.process_batch(key, batch)
            if self.auto_ack:
                for tup in batch:
                    self.ack(tup)
            self._batches.pop(key, None)
            self._current_tups, self._current_key = (), None

    def process(self, tup: Tuple) -> None:
        """Add a tuple to its batch."""
        self._batches[self.group_key(tup)].append(tup)

    def process_tick(self, tick_tup: Tuple) -> None:
        """Count a tick, and process the batches if they are due."""
        self._tick_counter += 1
        self.ack(tick_tup)
        if self._tick_counter > self.ticks_between_batches and self._batches:
            self.process_batches()
            self._tick_counter = 0

    def emit(
        self,
        tup: Sequence[object],
        stream: str | None = None,
        anchors: Iterable[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> None:
        """Emit a tuple; see `Bolt.emit`. No task ids are returned."""
        super().emit(tup, stream, anchors, direct_task)

    def _take(self, tup: Tuple) -> None:
        self._current_tups = (tup,)
        self.process(tup)
        self._current_tups = ()

    def _take_end(self) -> None:
        self.process_batches()

    def _batch_count(self) -> int:
        return len(self._batches)

    def _take_failure(self) -> bool:
        batch, in_batch = self._current_tups, self._current_key in self._batches and self._is_in_batch()
        self._current_tups = ()
        if not in_batch:
            return self.auto_fail
        self._batches.pop(self._current_key, None)
        self._current_key = None
        if self.auto_fail:
            for tup in batch:
                self.fail(tup)
        return False

    def _is_in_batch(self) -> bool:
        return self._current_tups is self._batches[self._current_key]


class TicklessBatchingBolt(BatchingBolt):
    """A bolt that processes its batches at a period, which needs no ticks in the configuration.

    Attributes:
        secs_between_batches: the period in seconds, which may be a fraction. A longer period that is set in
            `initialize` is rounded up to a multiple of that of the class.
    """

    secs_between_batches: float = 2

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._since_batches_s = 0.0

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        inputs: Inputs = None,
        par: Par | None = None,
        config: Mapping[str, object] | None = None,
    ) -> ComponentSpec:
        """Return this bolt as a part of a topology; see `Bolt.spec`."""
        spec = super().spec(name, inputs, par, config)
        if cls.process_tick is not TicklessBatchingBolt.process_tick:
            spec.foreign = ForeignRuntime(
                ForeignKind.CHILD,
                f"{cls.__module__}.{cls.__qualname__} is a TicklessBatchingBolt that defines process_tick",
                ("streamparse_run", f"{cls.__module__}.{cls.__qualname__}"),
            )
        return spec

    def process_tick(self, tick_tup: Tuple) -> None:
        """Do nothing: the period does not come from ticks of the configuration."""

    def _take_tick(self, tick: Tuple) -> None:
        self._since_batches_s += type(self).secs_between_batches  # the period of this bolt's ticks
        if self._since_batches_s >= self.secs_between_batches:
            self._since_batches_s = 0.0
            self.process_batches()
