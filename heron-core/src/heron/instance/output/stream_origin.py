"""What the output streams of a task have in common: their origin, limits and serializers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heron.api.api_constants import TOPOLOGY_COLUMNS_COMPRESSION
from heron.api.columns import compression_of
from heron.api.config import setting
from heron.errors import LimitExceededError
from heron.instance.codec.batch_codec import encode_rows
from heron.instance.codec.serializers import PICKLE, Serializers
from heron.instance.metrics.spans import SpanBuffer
from heron.ipc.frames.frame_limits import options_max_bytes
from heron.spi.inspected_task import InspectedTask
from heron.spi.serializer import Serializer

if TYPE_CHECKING:  # needs pyarrow
    from heron.spi.column_serializer import ColumnSerializer

__all__ = ["ColumnRecord", "StreamOrigin"]


@dataclass(slots=True)
class StreamOrigin:
    """The origin that every segment of a task carries, and the limits of the task's batches.

    `rejected` receives stream, row and reason of each row that cannot be encoded.
    """

    task_id: int
    incarnation: int
    plan_version: int
    batch_rows: int
    batch_bytes: int
    tuple_max_bytes: int
    rejected: Callable[[str, object, Exception], None]
    serializer: Serializer = PICKLE
    serializers: Serializers = field(default_factory=Serializers)
    config: Mapping[str, object] = field(default_factory=dict)
    inspected: InspectedTask = field(default_factory=InspectedTask)
    spans: SpanBuffer = field(default_factory=lambda: SpanBuffer("", 0))

    @property
    def options_max_bytes(self) -> int:
        """The most bytes that the roots and row numbers of a segment may take."""
        return options_max_bytes(self.tuple_max_bytes)

    def too_many_roots(self, size_bytes: int) -> LimitExceededError:
        """The error for a tuple or batch whose anchors have more roots than a segment can list."""
        return LimitExceededError(
            f"the roots of the anchors take {size_bytes} bytes, which exceeds heron.tuple.max.bytes plus 512 KiB, "
            f"{self.options_max_bytes} bytes; anchor it to fewer tuples, or raise the limit in the profile's engine "
            "section"
        )

    def column_serializer(self) -> ColumnSerializer:
        """The serializer of columns; see `heron.instance.codec.serializers.Serializers.for_columns`."""
        return self.serializers.for_columns()

    def compression(self, stream: str) -> str:
        """The compression of a stream's columns, by ``topology.columns.compression``."""
        return compression_of(str(setting(self.config, TOPOLOGY_COLUMNS_COMPRESSION)), stream)

    def encoded(
        self, rows: list[object], fields: Sequence[str], rejected: Callable[[object, Exception], None]
    ) -> Iterator[tuple[list[object], bytes]]:
        """The rows as ``(rows, payload)``, within the limits; see `heron.instance.codec.batch_codec.encode_rows`."""
        return encode_rows(
            rows,
            fields,
            self.serializer,
            batch_bytes=self.batch_bytes,
            tuple_max_bytes=self.tuple_max_bytes,
            rejected=rejected,
        )


@dataclass(slots=True)
class ColumnRecord:
    """What a task remembers of a stream's columns across plans: the types of the first batch, and what was sent."""

    types: tuple[str, ...] = ()
    segments: int = 0
    payload_bytes: int = 0
