"""Components that pass whole batches on to a program in another language, and get batches from it.

`PlainBolt` and `PlainSpout` are for authors of such runners; `WIRE.md` describes the encoding ``plain`` of the batches.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from heron.api.bolt import Bolt
from heron.api.plain_batch import PlainBatch
from heron.api.spout import Spout
from heron.api.tuple import Tuple

__all__ = ["PlainBolt", "PlainSpout"]


class PlainBolt(Bolt):
    """A bolt that takes batches as they arrive.

    `process` is called too: for tuples with values that the encoding ``plain`` does not have, and while a trace, a task
    hook or dead letters need single tuples.
    """

    @abstractmethod
    def process_plain(self, batch: PlainBatch) -> None:
        """Process a batch of tuples that is not decoded.

        With at-least-once delivery, settle each row with `settle_rows`, here or later. An exception fails the rows that
        are not settled; ``topology.on.error: stop`` makes it end the instance.
        """

    def emit_plain(
        self,
        payload: bytes,
        rows: int,
        stream: str = "default",
        anchors: Sequence[tuple[PlainBatch | Tuple, Sequence[int]]] = (),
    ) -> Sequence[tuple[object, ...]]:
        """Emit a batch that is encoded already, if possible without a look at its rows.

        Args:
            payload: the batch, with a column for each declared field of the stream.
            rows: the number of its rows, at least 1.
            stream: the name of a declared output stream.
            anchors: nothing, or the anchors of all rows in their order: received batches, each with the places of the
                rows in it that are the anchors of the next rows here. The place -1 stands for no anchor. A received
                tuple counts as a batch of one row.

        Returns:
            Nothing if the batch was emitted. Otherwise nothing was emitted, and the caller has to emit these rows one
            by one: a custom grouping, a trace, a task hook, or somebody who looks at tuples needs them.

        Raises:
            EmitError: when the stream is unknown, or the bolt has no collector.
            SerializationError: when the payload is no batch of this stream.
        """
        return self._collector.emit_plain(payload, rows, stream, anchors)

    def settle_rows(self, batch: PlainBatch, places: Sequence[int], *, acked: bool) -> None:
        """Ack or fail the rows at these places of a batch that `process_plain` has received.

        The first ack or fail of a row counts; others are only counted.
        """
        self._collector.settle_rows(batch, places, acked=acked)

    def flush_if_due(self) -> bool:
        """Send what was emitted and settled, if it has waited for the linger.

        For `process` and `process_plain` that wait for another program: otherwise acks leave after the call only, and
        their roots may have expired. Waits while the output has no room.

        Returns:
            Whether the process is asked to stop. Return from the call soon then; what is not settled is emitted again.

        Raises:
            EmitError: when the bolt has no collector.
        """
        return self._collector.flush_if_due()


class PlainSpout(Spout):
    """A spout that emits batches.

    At least once `ack_all` is called instead of `ack`. At most once, and in simulations, `ack` is called, which passes
    each id to `ack_all`.
    """

    def ack(self, tup_id: object) -> None:
        """Call `ack_all` with one id."""
        self.ack_all([tup_id])

    @abstractmethod
    def ack_all(self, tup_ids: Sequence[object]) -> None:
        """Receive the ids of emitted tuples whose trees are complete, in the order of completion; at least one."""

    def emit_plain(
        self, payload: bytes, rows: int, stream: str = "default", ids: Sequence[object] | None = None
    ) -> Sequence[tuple[object, ...]]:
        """Emit a batch that is encoded already, if possible without a look at its rows.

        Args:
            payload: the batch, with a column for each declared field of the stream.
            rows: the number of its rows, at least 1.
            stream: the name of a declared output stream.
            ids: the `tup_id` of each row, or nothing if no row has one.

        Returns:
            As `PlainBolt.emit_plain`.

        Raises:
            EmitError: when the stream is unknown, or the spout has no collector.
            SerializationError: when the payload is no batch of this stream.
        """
        return self._collector.emit_plain(payload, rows, stream, ids)
