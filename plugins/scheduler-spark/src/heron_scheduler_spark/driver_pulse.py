"""Whether a driver still works: it says so each second, and for how long Spark's JVM has not answered it. Pure."""

from __future__ import annotations

__all__ = ["DriverPulse"]

_STARTS = 4.0  # beyond the time for a start: a JVM that is started while others die takes its time
_JVM = 2.0  # its containers run on while a JVM pauses, so that there is no hurry


class DriverPulse:
    """Times are monotonic seconds.

    After `silence_s` of silence the tasks of a driver have given it up and ended. A JVM that pauses harms nothing but
    starts, and has twice as long. Until it is `ready` a driver says nothing, and has four times `start_s`.
    """

    def __init__(self, silence_s: float, start_s: float, now_s: float) -> None:
        self._silence_s = silence_s
        self._start_s = start_s
        self._heard_s = now_s
        self._jvm_silent_s = 0.0
        self._ready = False

    def heard(self, now_s: float) -> None:
        """It has said something."""
        self._heard_s = now_s

    def alive(self, jvm_silent_s: float) -> None:
        """It has said for how long its JVM has not answered."""
        self._jvm_silent_s = jvm_silent_s

    def ready(self) -> None:
        """It serves, and from now on says so."""
        self._ready = True

    def silent_s(self, now_s: float) -> float:
        """For how long a driver that serves has said nothing."""
        return now_s - self._heard_s if self._ready else 0.0

    def hangs(self, now_s: float) -> str:
        """Why it is to be given up; "" while it is not."""
        if not self._ready:
            limit_s = _STARTS * self._start_s
            return f"it did not serve within {limit_s:g} s" if now_s - self._heard_s > limit_s else ""
        if self.silent_s(now_s) > self._silence_s:
            return f"it has said nothing for {self._silence_s:g} s"
        limit_s = _JVM * self._silence_s
        return f"its JVM has not answered for {limit_s:g} s" if self._jvm_silent_s > limit_s else ""
