"""What a stream manager counts."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Counters"]


@dataclass(slots=True)
class Counters:
    """Totals since the process began; `refused_frames` are those of sessions that are over or broke the rules."""

    frames_from_instances: int = 0
    bytes_from_instances: int = 0
    frames_from_peers: int = 0
    bytes_from_peers: int = 0
    bytes_to_instances: int = 0
    bytes_to_peers: int = 0
    lost_frames: int = 0
    refused_frames: int = 0
    ack_bytes: int = 0
    lost_acks: int = 0
    broken_links: int = 0  # to peers, with something on its way
