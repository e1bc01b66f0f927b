"""The replays of a spout without `topology.replay.attempts`: its author emits failed roots again, the engine none."""

from __future__ import annotations

from heron.api.definition import StreamDefinition
from heron.instance.acks.pending_roots import PendingRoots
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import StreamRoutes
from heron.instance.output.tracked_stream import RootStream

__all__ = ["OwnReplays"]


class OwnReplays:
    """What a spout's runner asks, with the answers of nothing; `heron.instance.spout_replays` has the others."""

    def __init__(self, pending: PendingRoots) -> None:
        self._pending = pending

    @property
    def waiting(self) -> int:
        """Roots that wait for their next emission."""
        return 0

    def make_stream(
        self, number: int, definition: StreamDefinition, routes: StreamRoutes, origin: StreamOrigin
    ) -> OutStream:
        """`heron.instance.task.StreamMaker`: a stream of roots."""
        return RootStream(number, definition, routes, origin, self._pending)

    def is_due(self) -> bool:
        """Whether a root is to be emitted again now."""
        return False

    def is_full(self) -> bool:
        """Whether so much is kept that the spout must not emit new roots."""
        return False

    def wait_s(self, most_s: float) -> float:
        """How long the task may wait: until the next replay, at most `most_s`."""
        return most_s

    def emit_due(self, most: float) -> None:
        """Emits up to `most` of the roots that are due; they leave with the next flush."""

    def forget(self) -> None:
        """Drops what waits: the component is constructed again, from a state that is older."""
