"""How much an instance sends and emits: the output limit, and the throttling of a spout."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from heron.clock import Clock, monotonic_s

__all__ = ["OutputLimit", "SpoutThrottle"]

_BURST_S = 1.5
_BATCH_S = 0.1  # a batch that is larger than what may be sent in this time makes the output uneven
_LEAST_BATCH_BYTES = 1024
_SHORTEST_WAIT_S = 0.001
_UNLIMITED = 1e18  # bytes/s; infinity times no time is not a number


class OutputLimit:
    """`topology.component.output.bps`: how many bytes per second a task may send.

    A bucket fills at that pace, up to 1.5 s worth of bytes (as in Heron), and each frame takes its size out. A frame
    may go while the bucket is not overdrawn. A frame that is larger than the bucket goes too, and later frames wait for
    it: over time the pace is exact for frames of any size.

    The gateway sends by it; the task thread reads how long it delayed data.
    """

    def __init__(self, bytes_per_s: float, clock: Callable[[], float] = monotonic_s) -> None:
        self._clock = clock
        self._bytes_per_s = bytes_per_s
        self._level = 0.0
        self._filled_s = clock()
        self._delayed_since_s: float | None = None
        self._delayed_s = 0.0

    @property
    def batch_bytes(self) -> int:
        """The batch size that makes the output even."""
        return max(_LEAST_BATCH_BYTES, int(self._bytes_per_s * _BATCH_S))

    def set_pace(self, bytes_per_s: float) -> None:
        """Changes the pace: a new plan may divide the component's limit among another number of tasks."""
        self._bytes_per_s = bytes_per_s

    def lift(self) -> None:
        """Lets all data pass until `set_pace`: a new plan may have no limit."""
        self._bytes_per_s = _UNLIMITED

    def allows(self) -> bool:
        """Whether a frame may go now. After False, the time until a frame may go counts as delayed."""
        now_s = self._clock()
        filled = self._level + (now_s - self._filled_s) * self._bytes_per_s
        self._level = min(filled, _BURST_S * self._bytes_per_s)
        self._filled_s = now_s
        if self._level < 0:
            if self._delayed_since_s is None:
                self._delayed_since_s = now_s
            return False
        self.idle()
        return True

    def idle(self) -> None:
        """Stops counting: there is no data, or data waits for credit and not for this limit."""
        if self._delayed_since_s is not None:
            self._delayed_s += self._clock() - self._delayed_since_s
            self._delayed_since_s = None

    def spend(self, size_bytes: int) -> None:
        """Takes the size of a sent frame out of the bucket."""
        self._level -= size_bytes

    def wait_s(self) -> float | None:
        """Seconds until the delayed frame may go; None while no frame is delayed."""
        if self._delayed_since_s is None:
            return None
        return max(_SHORTEST_WAIT_S, -self._level / self._bytes_per_s)

    def delayed_s(self) -> float:
        """Seconds that data has waited for this limit, in total."""
        since_s = self._delayed_since_s
        return self._delayed_s + (self._clock() - since_s if since_s is not None else 0.0)


class SpoutThrottle:
    """The culprits of back pressure that this spout feeds; empty for a bolt, and while there is no stream manager.

    While there is a culprit, the spout's `next_tuple` is not called. The gateway writes, the task thread reads; each
    value is replaced as a whole.
    """

    __slots__ = ("_clock", "_time", "culprits")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.culprits: frozenset[int] = frozenset()
        self._time = (0.0, 0.0)  # throttled seconds until the present state began, and when it began

    def begin(self, culprits: Iterable[int] = ()) -> None:
        """Starts with the culprits of a new session, or with none when a session ends."""
        self._replace(frozenset(culprits))

    def change(self, culprit: int, *, on: bool) -> None:
        """Adds or removes a culprit."""
        self._replace(self.culprits | {culprit} if on else self.culprits - {culprit})

    def total_s(self) -> float:
        """Seconds that the spout has been throttled so far."""
        total_s, since_s = self._time
        return total_s + (self._clock.monotonic_s() - since_s if self.culprits else 0.0)

    def _replace(self, culprits: frozenset[int]) -> None:
        if bool(culprits) != bool(self.culprits):
            self._time = (self.total_s(), self._clock.monotonic_s())
        self.culprits = culprits
