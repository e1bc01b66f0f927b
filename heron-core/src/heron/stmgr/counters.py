"""The counters of a stream manager: traffic on its links, outcomes of roots, lateness of its timer."""

from __future__ import annotations

from dataclasses import dataclass, field

from heron.ipc.frames.tracking import RootOutcome

__all__ = ["AckCounters", "TimerLateness", "TrafficCounters"]

_TOLERATED_S = 0.1  # a round over full queues takes some milliseconds; a busy machine adds some more


@dataclass(slots=True)
class TrafficCounters:
    """Totals since the process started.

    `refused_frames` counts frames of ended sessions and frames that break the protocol. `broken_links` counts links to
    peers that ended with data under way. `lost_tuples` counts tuples that this process sent in sessions which their
    receiver ended because of a frame.
    """

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
    broken_links: int = 0
    lost_tuples: int = 0


@dataclass(slots=True)
class AckCounters:
    """Totals of roots since the process started.

    `late_acks` and `late_fails` count acks and fails of roots that are not in flight: settled, expired, lost or
    unknown.
    """

    settled: dict[RootOutcome, int] = field(default_factory=lambda: dict.fromkeys(RootOutcome, 0))
    late_acks: int = 0
    late_fails: int = 0


class TimerLateness:
    """How late this process's own timer fires, in seconds, in total.

    A peer cannot measure it for a stream manager whose tasks exchange data only within its container.
    """

    __slots__ = ("total_s",)

    def __init__(self) -> None:
        self.total_s = 0.0

    def fired(self, now_s: float, due_s: float) -> None:
        """Notes that the timer has fired, and when it was due (monotonic seconds)."""
        late_s = now_s - due_s
        if late_s > _TOLERATED_S:
            self.total_s += late_s
