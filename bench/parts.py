"""Assign functions to parts of the work, by their source file."""

from __future__ import annotations

from pathlib import Path

from bench.trial import TOPOLOGIES

__all__ = ["GATEWAY", "OTHER", "PARTS", "PART_OF", "USER", "ZMQ", "part_of"]

USER = "user code"
_FILES = {
    "emit": "column_output emitter generated_emit key_encoding key_group plain_output",
    "root bookkeeping": "flush_arrays kept_rows kept_stream pending_roots tracked_stream",
    "grouping and flush": "out_stream stream_origin stream_routes",
    "encode": "",
    "decode": "batch_reader received_batches",
    "pool": "tuple tuple_pool",
    "process": "batch_processor bolt_output bolt_runner emit_lock pacing runner spout_runner task task_context "
    "task_metrics task_time user_component",
    "ack": "batch_arrays bolt_acks tracked_batch",
    "routing": "instance_links outlet peer_links peer_session router stream_manager",
    "frames": "frame frame_limits tracking tracking_arrays",
    "ledger": "ack_outcomes ack_routing ledger",
    "complete": "",
    "sockets": "data_queue flow_limits gateway link queue_capacity reactor session socket wakeup",
}
PART_OF = {f"{name}.py": part for part, names in _FILES.items() for name in names.split()}
_CODEC = "codec"
"""The folder whose functions encode, or decode if their name begins with one of `_DECODES`."""
_DECODES = ("decode", "is_batch", "columns", "read", "rows_of")
_CALLBACKS = "RootCallbacks."
_USER_FILES = frozenset(path.name for path in TOPOLOGIES.glob("*.py"))
GATEWAY = "gateway thread"
ZMQ = "ZeroMQ's threads"
OTHER = "other"

PARTS = (USER, *_FILES, GATEWAY, ZMQ, OTHER)
"""The parts of a profile."""


def part_of(filename: str, function: str) -> str:
    """Return the part of one function."""
    path = Path(filename)
    if filename == "<string>":
        return "emit" if "emit" in function or "add" in function else OTHER
    if "heron" not in path.parts:
        return USER if path.name in _USER_FILES else OTHER
    if path.parent.name == _CODEC:
        return "decode" if function.rpartition(".")[2].lstrip("_").startswith(_DECODES) else "encode"
    return "complete" if function.startswith(_CALLBACKS) else PART_OF.get(path.name, OTHER)
