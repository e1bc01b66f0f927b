"""Parts of the engine for tests of this distribution: tasks and batches, and the rest of a topology around them.

Definitions and plans come from `heron_testing.builders`. Tests that use these builders do not change when batches get
another format.
"""

from parts.batches import data_frame, decoded_columns, decoded_rows, end_marker, tuple_segment
from parts.tasks import instance_spec, stream_origin

__all__ = [
    "data_frame",
    "decoded_columns",
    "decoded_rows",
    "end_marker",
    "instance_spec",
    "stream_origin",
    "tuple_segment",
]
