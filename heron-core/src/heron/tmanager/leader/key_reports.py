"""The keys that the stream managers have and use, by their heartbeats. Pure; decision 059."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from heron.ipc.documents.status import KeysStatus

__all__ = ["KeyReports"]


class KeyReports:
    """The newest report of each container. A leader that has just begun has none."""

    def __init__(self) -> None:
        self._reports: dict[int, tuple[tuple[str, ...], bool]] = {}

    def take(self, container_id: int, server_keys: tuple[str, ...], *, moved: bool) -> None:
        """A stream manager has these sets of keys; `moved`: all its sessions use the newest of them."""
        self._reports[container_id] = server_keys, moved

    def forget(self, container_id: int) -> None:
        """What a former incarnation has reported does not count."""
        self._reports.pop(container_id, None)

    def statuses(self, containers: Collection[int]) -> tuple[KeysStatus, ...]:
        """The containers that have reported, grouped by what they reported."""
        groups: dict[tuple[tuple[str, ...], bool], list[int]] = defaultdict(list)
        for container_id in sorted(containers):
            if container_id in self._reports:
                groups[self._reports[container_id]].append(container_id)
        return tuple(KeysStatus(keys, moved, tuple(ids)) for (keys, moved), ids in groups.items())
