"""The stream managers that have registered, and which of them have fallen silent. Pure."""

from __future__ import annotations

import enum

from heron.planner.physical_plan import StreamManagerLocation

__all__ = ["Registration", "Registry"]


class Registration(enum.Enum):
    """What a registration means for the plan."""

    NEW = "new"
    SAME = "same"
    CHANGED = "changed"
    STALE = "stale"  # of an incarnation that has a successor


class _Entry:
    __slots__ = ("heard_at_s", "location", "silent")

    def __init__(self, location: StreamManagerLocation, now_s: float) -> None:
        self.location = location
        self.heard_at_s = now_s
        self.silent = False


class Registry:
    """Stream managers by container; times are monotonic seconds."""

    def __init__(self, silence_s: float) -> None:
        self._silence_s = silence_s
        self._entries: dict[int, _Entry] = {}

    def register(self, location: StreamManagerLocation, now_s: float) -> Registration:
        """Takes a registration; a stale one changes nothing."""
        known = self._entries.get(location.container_id)
        if known is not None and location.incarnation < known.location.incarnation:
            return Registration.STALE
        self._entries[location.container_id] = _Entry(location, now_s)
        if known is None:
            return Registration.NEW
        return Registration.SAME if known.location == location else Registration.CHANGED

    def heard(self, container_id: int, now_s: float) -> bool:
        """A sign of life; True when it comes after a silence."""
        entry = self._entries.get(container_id)
        if entry is None:
            return False
        was_silent = entry.silent
        entry.heard_at_s = now_s
        entry.silent = False
        return was_silent

    def newly_silent(self, now_s: float) -> tuple[int, ...]:
        """The containers whose stream manager has now been silent too long; each silence is told once."""
        found = []
        for container_id, entry in self._entries.items():
            if not entry.silent and now_s - entry.heard_at_s >= self._silence_s:
                entry.silent = True
                found.append(container_id)
        return tuple(found)

    def silent(self) -> tuple[int, ...]:
        """The containers whose stream manager counts as silent for too long."""
        return tuple(sorted(container_id for container_id, entry in self._entries.items() if entry.silent))

    def silent_s(self, longer_than_s: float, now_s: float) -> dict[int, float]:
        """For how long each stream manager has been silent that was for longer than that."""
        silent = {container_id: now_s - entry.heard_at_s for container_id, entry in self._entries.items()}
        return {container_id: seconds for container_id, seconds in silent.items() if seconds > longer_than_s}

    def locations(self) -> dict[int, StreamManagerLocation]:
        """Where the registered ones are, by container."""
        return {container_id: entry.location for container_id, entry in self._entries.items()}
