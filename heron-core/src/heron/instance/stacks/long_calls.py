"""Finds calls of user code that last too long. Runs on the gateway thread, a few times per limit.

The task thread counts its rounds. While that number grows, nothing else is looked at, so tuples cost nothing. When it
does not grow, the outermost frame of user code is kept until the next look. If that look finds the same frame, it is
the same call: Python cannot reuse a frame that is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

from heron.driver_kit.code_origin import CodeOrigin, code_origin, module_of
from heron.instance.stacks.engine_wait import codes_of, engine_wait

__all__ = ["LongCall", "LongCalls", "look_period_s"]

_LOOKS = 10  # in the time of the limit
_OFTENEST_S, _RAREST_S = 0.05, 1.0
_REPEAT_S = 5.0


@dataclass(frozen=True, slots=True)
class LongCall:
    """A call that has lasted too long, or with `on` false the end of such a call.

    `place` is the file and line of the innermost user code, `lasts_s` the time since the first look that saw the call.
    `repeated` is whether it was reported before.
    """

    function: str
    place: str
    lasts_s: float
    on: bool = True
    repeated: bool = False

    def text(self) -> str:
        """What the task is doing, for people: it follows the name of the task."""
        return f"has been in one call of {self.function} for {self.lasts_s:.0f} s, at {self.place}"


def look_period_s(limit_s: float) -> float:
    """How often to look, in seconds: a report is late by at most that time."""
    return min(_RAREST_S, max(_OFTENEST_S, limit_s / _LOOKS))


class LongCalls:
    """Watches the task thread; times are monotonic seconds."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._rounds = -1
        self._call: FrameType | None = None
        self._since_s = 0.0
        self._reported_s: float | None = None

    def look(self, rounds: int, frame_of: Callable[[], FrameType | None], now_s: float) -> LongCall | None:
        """Looks at the thread; returns what to report, if anything. `frame_of` returns its innermost frame."""
        if rounds != self._rounds:
            self._rounds = rounds
            return self._follow(None, now_s)
        frame = frame_of()
        outermost, innermost = _user_frames(frame)
        if outermost is None or innermost is None or outermost is not self._call:
            return self._follow(outermost, now_s)
        lasts_s = now_s - self._since_s
        if lasts_s < self._limit_s or (self._reported_s is not None and now_s - self._reported_s < _REPEAT_S):
            return None
        repeated, self._reported_s = self._reported_s is not None, now_s
        place = f"{innermost.f_code.co_filename}, line {innermost.f_lineno}"
        return LongCall(outermost.f_code.co_name, place, lasts_s, repeated=repeated)

    def _follow(self, call: FrameType | None, now_s: float) -> LongCall | None:
        """Follows another call, or none; returns the end of the former one if it was reported."""
        former, since_s, was_reported = self._call, self._since_s, self._reported_s is not None
        self._call, self._since_s, self._reported_s = call, now_s, None
        if former is None or not was_reported:
            return None
        return LongCall(former.f_code.co_name, "", now_s - since_s, on=False)


def _user_frames(frame: FrameType | None) -> tuple[FrameType | None, FrameType | None]:
    """The outermost and the innermost frame of user code; none while it waits for the engine, such as for room."""
    if frame is None or engine_wait(codes_of(frame)):
        return None, None
    outermost = innermost = None
    while frame is not None:
        if code_origin(frame.f_code.co_filename, module_of(frame.f_globals)) is CodeOrigin.USER:
            outermost, innermost = frame, innermost or frame
        frame = frame.f_back
    return outermost, innermost
