"""Assign functions to parts of the work, by their source file."""

from __future__ import annotations

from pathlib import Path

from bench.trial import TOPOLOGIES

__all__ = ["GATEWAY", "OTHER", "PARTS", "PART_OF", "USER", "ZMQ", "part_of"]

USER = "user code"
_FILES = {
    "calls and emits": (
        "bolt_runner emit_source emitter out_stream runner spout_runner splitters stream_routes task task_metrics "
        "tuple tuple_pool tuple_source key_encoding key_group user_component"
    ),
    "serialisation": "batch_codec",
    "routing": ("frame instance_links outlet peer_links peer_session router stream_manager"),
    "ledger": (
        "ack_outcomes ack_routing anchors array_tracking arrays bolt_tracker finish_roots in_batch ledger "
        "root_book root_settler tracked_stream tracking tracking_arrays"
    ),
    "sockets": "data_queue gateway link reactor session socket wakeup",
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
