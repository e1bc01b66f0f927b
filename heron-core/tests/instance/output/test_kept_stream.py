"""What a stream keeps of its roots, so that they can be emitted again."""

from __future__ import annotations

from typing import cast

import pyarrow as pa
import pytest

from heron.api.definition import StreamDefinition
from heron.errors import EmitError
from heron.instance.acks.pending_roots import PendingRoots
from heron.instance.output.column_output import ColumnOutput
from heron.instance.output.kept_stream import KeptRootStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import StreamRoutes
from heron.instance.replay.replay_policy import ReplayPolicy
from heron.instance.replay.replayer import Replayer
from heron_testing.fake_clock import FakeClock


class NoRoute:
    """Columns whose custom grouping refuses a batch."""

    rows = 0

    def copied(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch."""
        return batch

    def parts(self, batch: pa.RecordBatch, direct: int | None) -> object:
        """Refuse."""
        message = "no such task"
        raise EmitError(message)


def test_rows_are_not_lost_if_a_batch_of_columns_is_refused() -> None:
    """They were emitted before it, and wait for their flush as before."""
    clock = FakeClock()
    pending = PendingRoots(clock.monotonic_s)
    replayer = Replayer(ReplayPolicy(1, 0.1, 1000), clock.monotonic_s, lambda _given_up: None)
    origin = StreamOrigin(1, 1, 1, 100, 1000, 1000, lambda _stream, row, error: pytest.fail(f"{row}: {error}"))
    routes = StreamRoutes(whole=(2,))
    stream = KeptRootStream(0, StreamDefinition("default", ("n",)), routes, origin, pending, replayer)
    stream.rows.append(7)
    stream.ids.append("seven")
    batch = pa.RecordBatch.from_pydict({"n": [8]})
    with pytest.raises(EmitError, match="no such task"):
        stream.emit_root(cast("ColumnOutput", NoRoute()), batch, None, "eight", None)
    assert (stream.waiting(), pending.in_flight) == (1, 0)
    assert len(stream.flush()) == 2  # the root and the row
    assert (pending.in_flight, replayer.kept_bytes > 0) == (1, True)
