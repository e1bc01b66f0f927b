"""Builds topologies, physical plans, instance specs and batches for tests, and decodes the batches that tests receive.

Tests state only what matters to them; every other value has a default. Tests that use these builders do not change when
a definition gets a field, or when batches get another format.
"""

from builders.batches import data_frame, decoded_columns, decoded_rows, end_marker, tuple_segment
from builders.plans import physical_plan, plan_index, stmgr_locations
from builders.tasks import instance_spec, stream_origin
from builders.topologies import bolt, spout, stream, subscription, topology

__all__ = [
    "bolt",
    "data_frame",
    "decoded_columns",
    "decoded_rows",
    "end_marker",
    "instance_spec",
    "physical_plan",
    "plan_index",
    "spout",
    "stmgr_locations",
    "stream",
    "stream_origin",
    "subscription",
    "topology",
    "tuple_segment",
]
