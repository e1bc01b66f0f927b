"""The culprits of back pressure, as the stream managers report them, and since when. Pure."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["BackPressureReports"]


class BackPressureReports:
    """Culprits by task: a task is a culprit as long as any stream manager reports it. Times are wall-clock seconds."""

    def __init__(self) -> None:
        self._reporters: dict[int, dict[int, str]] = {}  # causes, by task and stream manager; the newest last
        self._since: dict[int, float] = {}

    def report(self, task_id: int, container_id: int, *, on: bool, now_s: float, cause: str = "") -> float | None:
        """Takes a report of the stream manager of a container.

        Returns 0.0 if the task becomes a culprit, the duration (s) if it stops being one, and None otherwise.
        """
        reporters = self._reporters.setdefault(task_id, {})
        reporters.pop(container_id, None)
        if on:
            reporters[container_id] = cause
            if task_id not in self._since:
                self._since[task_id] = now_s
                return 0.0
            return None
        if reporters:
            return None
        del self._reporters[task_id]
        since = self._since.pop(task_id, None)
        return None if since is None else max(0.0, now_s - since)

    def forget(self, container_id: int, now_s: float) -> tuple[tuple[int, float], ...]:
        """Withdraws the reports of a restarted stream manager; returns ``(task, duration)`` of former culprits."""
        ended = []
        for task_id in [task for task, reporters in self._reporters.items() if container_id in reporters]:
            duration_s = self.report(task_id, container_id, on=False, now_s=now_s)
            if duration_s is not None:
                ended.append((task_id, duration_s))
        return tuple(ended)

    def keep(self, containers: Collection[int], now_s: float) -> tuple[tuple[int, float], ...]:
        """Withdraws the reports of all other containers, as `forget` does."""
        reporters = {each for reports in self._reporters.values() for each in reports}
        return tuple(ended for each in sorted(reporters.difference(containers)) for ended in self.forget(each, now_s))

    def culprits(self) -> dict[int, tuple[float, str]]:
        """For each culprit, the time of its first report and the cause in the newest report that still holds."""
        return {
            task_id: (since_s, next(reversed(self._reporters[task_id].values())))
            for task_id, since_s in self._since.items()
        }
