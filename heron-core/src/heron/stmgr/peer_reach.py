"""Which peers are silent, and since when. Pure; times are monotonic seconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["PeerReach", "ReachChanged"]


@dataclass(frozen=True, slots=True)
class ReachChanged:
    """A peer is no longer reached after `silent_s` of silence, or is reached again after that time."""

    container_id: int
    reached: bool
    silent_s: float


class PeerReach:
    """When each peer was last heard. A peer that is silent for longer than `limit_s` is not reached.

    A process that was stopped itself has not listened. When it resumes, its peers have the full time again.
    """

    __slots__ = ("_heard_at_s", "_limit_s", "_unreached", "_updated_at_s")

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._updated_at_s = 0.0
        self._heard_at_s: dict[int, float] = {}
        self._unreached: dict[int, float] = {}  # when each of them was last heard

    def expect(self, container_ids: Iterable[int], now_s: float) -> None:
        """Sets the peers of the plan. The time of a new peer starts now; a peer that has moved keeps its time."""
        self._heard_at_s = {each: self._heard_at_s.get(each, now_s) for each in container_ids}
        for gone in self._unreached.keys() - self._heard_at_s.keys():
            del self._unreached[gone]

    def heard(self, container_id: int, now_s: float) -> None:
        """Notes that a message of the peer has arrived."""
        if container_id in self._heard_at_s:
            self._heard_at_s[container_id] = now_s

    def update(self, now_s: float) -> tuple[ReachChanged, ...]:
        """The changes since the last call; must be called several times in `limit_s`."""
        changes = []
        if now_s - self._updated_at_s > self._limit_s / 2:
            self._heard_at_s.update(dict.fromkeys(self._heard_at_s.keys() - self._unreached.keys(), now_s))
        self._updated_at_s = now_s
        for container_id, heard_at_s in self._heard_at_s.items():
            silent = now_s - heard_at_s > self._limit_s
            if silent and container_id not in self._unreached:
                self._unreached[container_id] = heard_at_s
                changes.append(ReachChanged(container_id, False, now_s - heard_at_s))
            elif not silent and container_id in self._unreached:
                changes.append(ReachChanged(container_id, True, heard_at_s - self._unreached.pop(container_id)))
        return tuple(changes)

    def silent_s(self, now_s: float) -> dict[int, float]:
        """For how long each peer that is not reached has been silent, as of the last `update`."""
        return {container_id: now_s - since_s for container_id, since_s in self._unreached.items()}
