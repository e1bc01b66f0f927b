"""Assign functions to parts of the work, by their source file."""

from __future__ import annotations

from pathlib import Path

from bench.trial import TOPOLOGIES

__all__ = ["GATEWAY", "OTHER", "PARTS", "PART_OF", "USER", "ZMQ", "part_of"]

USER = "user code"
_FILES = {
    "calls and emits": (
        "batch_processor batch_reader bolt_output bolt_runner generated_emit emitter key_encoding key_group out_stream "
        "pacing runner spout_runner stream_routes task task_context task_metrics tuple tuple_pool user_component"
    ),
    "serialisation": "batch_codec serializers",
    "routing": "frame instance_links outlet peer_links peer_session router stream_manager",
    "ledger": (
        "ack_outcomes ack_routing batch_arrays bolt_acks flush_arrays ledger pending_roots tracked_batch "
        "tracked_stream tracking tracking_arrays"
    ),
    "sockets": "data_queue flow_limits gateway link queue_capacity reactor session socket wakeup",
}
PART_OF = {f"{name}.py": part for part, names in _FILES.items() for name in names.split()}
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
        return "calls and emits" if "emit" in function or "add" in function else OTHER
    if "heron" in path.parts:
        return PART_OF.get(path.name, OTHER)
    return USER if path.name in _USER_FILES else OTHER
