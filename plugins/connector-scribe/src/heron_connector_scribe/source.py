"""A source of pipelines that is a Scribe collector."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from heron.api import TopologyReliabilityMode, api_constants
from heron.clock import monotonic_s
from heron.errors import ConnectorError
from heron_connector_scribe.batch import Batch, LogEntry
from heron_connector_scribe.log_server import LogServer
from heron_connector_scribe.retry_memory import Doubt, RetryMemory
from heron_connector_scribe.service_options import ServiceOptions
from heron_streamlet.connectors.sources import Source
from heron_streamlet.connectors.transformer import StageContext

__all__ = ["ScribeSource"]


class ScribeSource(Source[LogEntry]):
    """The messages that clients log. A client has its OK when the results of its batch are safe; see `ScribeSpout`.

    Each partition listens at its port, in the task that reads the partition.

    Raises:
        ConfigError: when an option is out of range.
    """

    bounded = False
    repeatable = False
    settles = True
    word = "scribe"

    def __init__(self, options: ServiceOptions) -> None:
        self._options = ServiceOptions.of(options)

    def partitions(self, tasks: int) -> Sequence[str]:
        """One for each task.

        Raises:
            ConfigError: when there are more tasks than ports.
        """
        self._options.port_of(tasks - 1)
        return super().partitions(tasks)

    def open(self, partition: str, position: object, context: StageContext) -> ScribeReader:
        """`Source.open`. The first `read` begins to listen."""
        mode = str(context.config.get(api_constants.TOPOLOGY_RELIABILITY_MODE, TopologyReliabilityMode.ATMOST_ONCE))
        server = LogServer(self._options, int(partition), context.name, mode)
        doubts = position.doubts if isinstance(position, ScribePosition) else ()
        remembers = mode == TopologyReliabilityMode.EFFECTIVELY_ONCE
        return ScribeReader(server, RetryMemory(self._options.retry_s, monotonic_s, doubts) if remembers else None)


class ScribePosition:
    """What a checkpoint knows of a partition: the batches whose clients may send them again."""

    def __init__(self, doubts: tuple[Doubt, ...]) -> None:
        self.doubts = doubts

    def __repr__(self) -> str:
        return f"<{len(self.doubts)} batches may come again>"


class ScribeReader:
    """A `PlacedReader` and a `SettledReader` of one partition."""

    def __init__(self, server: LogServer, memory: RetryMemory | None) -> None:
        self._server, self._memory = server, memory
        self._batch: Batch | None = None
        self._read_of: Batch | None = None  # the batch of the last read
        self._last = 0  # elements of the last read
        self._count = 0  # of all elements that were read
        self._ends: deque[tuple[int, Batch]] = deque()  # batches, and the count at their end

    @property
    def position(self) -> ScribePosition | None:
        """`Reader.position`."""
        return None if self._memory is None else ScribePosition(self._memory.doubts())

    def position_of(self, index: int) -> ScribePosition | None:
        """`PlacedReader.position_of`."""
        if self._memory is None or self._read_of is None:
            return self.position
        unread = self._last - index
        self._read_of.taken -= unread
        try:
            return self.position
        finally:
            self._read_of.taken += unread

    def read(self, limit: int) -> Sequence[LogEntry]:
        """`Reader.read`. All elements are of one batch.

        Raises:
            ConnectorError: when the port cannot be used, or the collector had an error of its own.
        """
        self._server.start()
        self._read_of, self._last = None, 0
        if self._batch is None:
            self._batch = self._next()
        if self._batch is None:
            if problem := self._server.take_problem():
                raise ConnectorError(problem)
            return ()
        batch = self._read_of = self._batch
        entries = [LogEntry._make(each) for each in batch.entries[batch.taken : batch.taken + limit]]
        batch.taken += len(entries)
        self._last = len(entries)
        self._count += len(entries)
        if batch.taken == len(batch.entries):
            self._ends.append((self._count, batch))
            self._batch = None
        return entries

    def settled(self, count: int) -> None:
        """`SettledReader.settled`."""
        while self._ends and self._ends[0][0] <= count:
            _, batch = self._ends.popleft()
            self._server.intake.answer(batch)

    def close(self) -> None:
        """`Reader.close`."""
        self._server.close()

    def _next(self) -> Batch | None:
        """The next batch that has entries for this task."""
        intake = self._server.intake
        while (batch := intake.take()) is not None:
            if batch.will_come_again:
                intake.answer(batch)
            elif self._memory is None:
                return batch
            elif (former := self._memory.former(batch)) is not None:
                former.caller = batch.caller
                if former.answered:
                    intake.answer(batch)
                else:
                    intake.release(batch)
            elif batch.taken == len(batch.entries):
                intake.answer(batch)  # the checkpoint has all of it
            else:
                return batch
        return None
