"""Who looks at the lists of the clusters: the watch of a cluster lists often for them, and at once for a new one."""

from __future__ import annotations

import threading
from collections.abc import Callable

from heron.clock import Clock

__all__ = ["LOOKED_S", "ListLooks"]

LOOKED_S = 30.0
"""For how long a look counts, in seconds: a page asks every second, and nothing while it is hidden."""

_NEVER = float("-inf")


class ListLooks:
    """The last look at the list of each cluster. Thread-safe; no method blocks on anything but the lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._looked_at_s: dict[str, float] = {}
        self._wakes: dict[str, Callable[[], None]] = {}

    def look(self, cluster: str) -> None:
        """Note that somebody asks about a cluster. After a time without looks its list may be old, and is wanted."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            goes_on = now_s - self._looked_at_s.get(cluster, _NEVER) < LOOKED_S
            self._looked_at_s[cluster] = now_s
        if not goes_on:
            self.want(cluster)

    def goes_on(self, cluster: str) -> bool:
        """Return whether somebody has asked about the cluster lately."""
        with self._lock:
            return self._clock.monotonic_s() - self._looked_at_s.get(cluster, _NEVER) < LOOKED_S

    def want(self, cluster: str) -> None:
        """Have the list of a cluster read now."""
        with self._lock:
            wake = self._wakes.get(cluster)
        if wake is not None:
            wake()

    def on_wanted(self, cluster: str, wake: Callable[[], None] | None) -> None:
        """Call `wake` when somebody needs a newer list of a cluster, from any thread; None ends it."""
        with self._lock:
            if wake is None:
                self._wakes.pop(cluster, None)
            else:
                self._wakes[cluster] = wake
