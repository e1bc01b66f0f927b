"""A spout that is a Scribe collector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import rshift
from typing import Any, ClassVar

from heron.api import (
    IMetric,
    ITwoPhaseStatefulComponent,
    PlainSpout,
    State,
    TopologyContext,
    TopologyReliabilityMode,
    api_constants,
)
from heron.clock import monotonic_s
from heron.errors import ConnectorError
from heron_connector_scribe.batch import Batch
from heron_connector_scribe.entries import Entry
from heron_connector_scribe.log_server import LogServer
from heron_connector_scribe.retry_memory import Doubt, RetryMemory
from heron_connector_scribe.service_options import CONFIG_KEY, ServiceOptions
from heron_connector_scribe.thrift_frames import log_entries

__all__ = ["ScribeSpout"]

_DOUBTS = "doubts"
_NUMBER_BITS = 20  # of the place in a batch, in an id; batches have at most 1,000,000 messages
_IN_BATCH = (1 << _NUMBER_BITS) - 1
_METRIC_S = 10.0


class ScribeSpout(PlainSpout, ITwoPhaseStatefulComponent):
    """Emits the messages that clients log. A client has its OK when its batch is safe.

    | mode | OK means |
    |---|---|
    | at most once | the batch waits in the memory of the task |
    | at least once | the trees of all its tuples are complete; with checkpoints, one contains them |
    | effectively once | a complete checkpoint contains the batch |

    Give it `ServiceOptions`: ``ScribeSpout.spec("lines", 2, config=ServiceOptions(ports=(1463, 1464)).config())``.
    """

    outputs: ClassVar[list[str]] = ["category", "partition", "message"]
    parse: ClassVar[staticmethod[..., Sequence[Entry]]] = staticmethod(log_entries)

    def init_state(self, state: State) -> None:
        """Take the doubts of the checkpoint."""
        self._state = state

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Read the options. The first `next_tuple` begins to listen: a task that only prepares must not."""
        self._mode = config.get(api_constants.TOPOLOGY_RELIABILITY_MODE, TopologyReliabilityMode.ATMOST_ONCE)
        options = ServiceOptions.of(config.get(CONFIG_KEY, {}))
        name, index = context.get_component_id(), context.get_task_index()
        self._server = LogServer(options, index, name, self._mode, parse=self.parse)
        self._intake = self._server.intake
        self._engine_replays = config.get(api_constants.TOPOLOGY_REPLAY_ATTEMPTS) is not None
        self._number = 0
        self._open: dict[int, _OpenRoots] = {}  # at least once, by number
        self._emitted: list[Batch] = []  # effectively once: since the last checkpoint
        self._saved: dict[int, list[Batch]] = {}
        doubts: tuple[Doubt, ...] = self._state.get(_DOUBTS) or ()
        self._memory = RetryMemory(options.retry_s, monotonic_s, doubts)
        self._emit_batch = {
            TopologyReliabilityMode.ATLEAST_ONCE: self._emit_tracked,
            TopologyReliabilityMode.EFFECTIVELY_ONCE: self._emit_once,
        }.get(self._mode, self._emit_untracked)
        context.register_metric("scribe", _Growth(self._counts), _METRIC_S)

    def next_tuple(self) -> None:
        """Emit a batch.

        Raises:
            ConnectorError: when the collector had an error of its own; the next call listens again.
        """
        self._server.start()
        if problem := self._server.take_problem():
            self.report_error(ConnectorError(problem))
        batch = self._intake.take()
        if batch is None:
            return
        if batch.will_come_again:
            self._intake.answer(batch)
        else:
            self._emit_batch(batch)

    def _emit_untracked(self, batch: Batch) -> None:
        self._emit_all(batch.entries)
        self._intake.release(batch)

    def _emit_all(self, entries: Sequence[Entry]) -> None:
        emit = self.emit
        for entry in entries:
            emit(entry)

    def _emit_tracked(self, batch: Batch) -> None:
        emit = self.emit
        for tup_id, entry in enumerate(batch.entries, self._opened([batch], len(batch.entries))):
            emit(entry, tup_id)

    def _opened(self, batches: Sequence[Batch], roots: int) -> int:
        """The id of the first root of batches."""
        self._number += 1
        self._open[self._number] = _OpenRoots(batches, roots)
        return self._number << _NUMBER_BITS

    def _close(self, tup_id: int) -> None:
        """No ack of these roots counts any more."""
        del self._open[tup_id >> _NUMBER_BITS]

    def _emit_once(self, batch: Batch) -> None:
        former = self._memory.former(batch)
        if former is not None:
            former.caller = batch.caller
            if former.answered:
                self._intake.answer(batch)
            else:
                self._intake.release(batch)
            return
        begin, batch.taken = batch.taken, len(batch.entries)
        if begin == batch.taken:  # the checkpoint has all of it
            self._intake.answer(batch)
            return
        self._emit_all(batch.entries[begin:])
        self._emitted.append(batch)

    def ack_all(self, tup_ids: Sequence[object]) -> None:
        """Answer the clients of whose batches the last tuples are safe."""
        numbers = map(rshift, tup_ids, repeat(_NUMBER_BITS))  # the ids of `_emit_tracked`
        for number, count in Counter(numbers).items():
            if (found := self._open.get(number)) is not None:
                found.left -= count
                if not found.left:
                    for batch in self._open.pop(number).batches:
                        self._intake.answer(batch)

    def fail(self, tup_id: object) -> None:
        """Emit the tuple again, unless the engine has given it up, or the client will send it again."""
        assert isinstance(tup_id, int)  # noqa: S101  # of `_opened`
        if (found := self._open.get(tup_id >> _NUMBER_BITS)) is not None:
            if self._engine_replays or all(each.will_come_again for each in found.batches):
                self.ack(tup_id)
            else:
                self._emit_again(found.batches, tup_id)

    def _emit_again(self, batches: Sequence[Batch], tup_id: int) -> None:
        (batch,) = batches
        self.emit(batch.entries[tup_id & _IN_BATCH], tup_id)

    def _counts(self) -> dict[str, int]:
        return {**self._server.counts, "forgotten": self._memory.forgotten}

    def backlog(self) -> float:
        """The messages that wait for `next_tuple`. Those of clients that were told to try later are not known."""
        return float(self._intake.waiting_messages)

    def pre_save(self, checkpoint_id: str) -> None:
        """The checkpoint contains what was emitted."""
        if self._mode == TopologyReliabilityMode.EFFECTIVELY_ONCE:
            self._saved[int(checkpoint_id)], self._emitted = self._emitted, []
            self._state.put(_DOUBTS, self._memory.doubts())

    def post_save(self, checkpoint_id: str) -> None:
        """Answer the clients whose batches are in the checkpoint."""
        for number in [each for each in self._saved if each <= int(checkpoint_id)]:
            for batch in self._saved.pop(number):
                self._intake.answer(batch)

    def pre_restore(self, checkpoint_id: str) -> None:
        """`init_state` has the doubts; nothing is written elsewhere."""

    def close(self) -> None:
        """Stop listening."""
        if hasattr(self, "_server"):
            self._server.close()


@dataclass(slots=True)
class _OpenRoots:
    """Batches that are safe when their tuples are: `left` of these are not settled."""

    batches: Sequence[Batch]
    left: int


class _Growth(IMetric):
    """How much the counts have grown since the last period."""

    def __init__(self, counts: Callable[[], dict[str, int]]) -> None:
        self._counts, self._told = counts, dict[str, int]()

    def get_value_and_reset(self) -> dict[str, int]:
        """`IMetric.get_value_and_reset`."""
        now = self._counts()
        grown = {name: value - self._told.get(name, 0) for name, value in now.items()}
        self._told = now
        return grown
