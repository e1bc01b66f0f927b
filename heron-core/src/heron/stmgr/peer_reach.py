"""Which peers have fallen silent, and since when. Pure; times are monotonic seconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["PeerReach", "ReachChanged"]


@dataclass(frozen=True, slots=True)
class ReachChanged:
    """The peer of a container is not heard any more, for `silent_s` by now, or is again, after so long."""

    container_id: int
    reached: bool
    silent_s: float


class PeerReach:
    """When each peer was last heard; one that has been silent for longer than `quiet_s` counts as not reached.

    Who was stopped meanwhile has not listened: its peers have the time from when it looks again.
    """

    __slots__ = ("_heard_at_s", "_looked_at_s", "_quiet_s", "_unreached")

    def __init__(self, quiet_s: float) -> None:
        self._quiet_s = quiet_s
        self._looked_at_s = 0.0
        self._heard_at_s: dict[int, float] = {}
        self._unreached: dict[int, float] = {}  # with when it was last heard before

    def expect(self, container_ids: Iterable[int], now_s: float) -> None:
        """These are the peers now. One that is new has the time from now; one that has moved is silent as before."""
        self._heard_at_s = {each: self._heard_at_s.get(each, now_s) for each in container_ids}
        for gone in self._unreached.keys() - self._heard_at_s.keys():
            del self._unreached[gone]

    def heard(self, container_id: int, now_s: float) -> None:
        """The peer has said something."""
        if container_id in self._heard_at_s:
            self._heard_at_s[container_id] = now_s

    def update(self, now_s: float) -> tuple[ReachChanged, ...]:
        """What has changed since the last time; to be called several times in `quiet_s`."""
        changes = []
        if now_s - self._looked_at_s > self._quiet_s / 2:
            self._heard_at_s.update(dict.fromkeys(self._heard_at_s.keys() - self._unreached.keys(), now_s))
        self._looked_at_s = now_s
        for container_id, heard_at_s in self._heard_at_s.items():
            silent = now_s - heard_at_s > self._quiet_s
            if silent and container_id not in self._unreached:
                self._unreached[container_id] = heard_at_s
                changes.append(ReachChanged(container_id, False, now_s - heard_at_s))
            elif not silent and container_id in self._unreached:
                changes.append(ReachChanged(container_id, True, heard_at_s - self._unreached.pop(container_id)))
        return tuple(changes)

    def silent_s(self, now_s: float) -> dict[int, float]:
        """For how long each peer that is not reached has been silent, as of the last `update`."""
        return {container_id: now_s - since_s for container_id, since_s in self._unreached.items()}
