"""Window bolts: they process the tuples of a span of time together.

A sliding window of duration D and slide S is processed every S seconds. It holds the tuples of the last D seconds.
Ticks come a little early or late, so the position of a tuple is counted in slides since the start, not in clock
readings. A late tick therefore never moves a tuple into one window more or less. The bolt acks a tuple after the last
window that holds it, so D + S must be shorter than the message timeout.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from heron.api.api_constants import TOPOLOGY_TICK_TUPLE_FREQ_SECS
from heron.api.bolt import Bolt
from heron.api.component_spec import HeronComponentSpec, Inputs
from heron.api.context import TopologyContext
from heron.api.state import State, StatefulComponent
from heron.api.stream import Stream
from heron.api.tuple import Tuple
from heron.author_text import short_text
from heron.clock import Clock, SystemClock
from heron.errors import TopologyError

__all__ = ["SlidingWindowBolt", "TumblingWindowBolt", "WindowBolt", "WindowContext"]

_STATE_KEY = "tuples"


class WindowContext(NamedTuple):
    """The span of a window, in seconds since the epoch."""

    start: float
    end: float


class WindowBolt(Bolt, StatefulComponent):
    """The common part of both window bolts. Authors derive from `SlidingWindowBolt` or `TumblingWindowBolt`.

    An `initialize` of an author's class must call ``super().initialize(config, context)``.
    """

    WINDOW_DURATION_SECS: ClassVar[str] = ""
    clock: Clock = SystemClock()
    _state: State | None = None

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        inputs: Inputs | None = None,
        par: int = 1,
        config: Mapping[str, object] | None = None,
        optional_outputs: Sequence[str | Stream] | None = None,
    ) -> HeronComponentSpec:
        """As `Bolt.spec`. `config` must hold the duration of the window; the slide sets the tick period.

        Raises:
            TopologyError: when the duration is missing, a time is not a number above 0, the slide is longer than the
                duration, or the configuration sets another tick period.
        """
        place = f"component {short_text(name)}" if name is not None else f"component of {cls.__qualname__}"
        _, slide_s = cls._times_s(config or {}, place)
        tick_s = (config or {}).get(TOPOLOGY_TICK_TUPLE_FREQ_SECS, slide_s)
        if _positive(tick_s) != slide_s:
            msg = (
                f"{place}: {TOPOLOGY_TICK_TUPLE_FREQ_SECS} is {short_text(tick_s)}, but this window ticks every "
                f"{slide_s:g} s; remove the key"
            )
            raise TopologyError(msg)
        ticking = {**(config or {}), TOPOLOGY_TICK_TUPLE_FREQ_SECS: slide_s}
        return super().spec(name, inputs, par, ticking, optional_outputs)

    def init_state(self, state: State) -> None:
        """Take over the tuples of the last windows."""
        self._state = state

    def pre_save(self, checkpoint_id: str) -> None:
        """Put the tuples of the last windows into the state."""
        if self._state is not None:
            self._state.put(_STATE_KEY, list(self._waiting))

    def processWindow(self, window_info: WindowContext, tuples: list[Tuple]) -> None:
        """Process a window. `tuples` are in the order of arrival; the bolt acks them itself."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Read the times from the configuration."""
        duration_s, slide_s = self._times_s(config, f"component {context.get_component_id()!r}")
        self.window_duration = duration_s
        self.slide_interval = slide_s
        self._slides = round(duration_s / slide_s, 9)  # 0.3 / 0.1 is 2.9999999999999996
        self._ticks = 0
        self._last_tick_s = self.clock.monotonic_s()
        self._waiting: deque[tuple[float, Tuple]] = deque()  # (arrival in slides since the start, tuple)
        saved = self._state.get(_STATE_KEY) if self._state is not None else None
        self._waiting.extend((0.0, tup) for _, tup in saved or ())

    def process(self, tup: Tuple) -> None:
        """Keep the tuple for its windows."""
        # The bound below 1 keeps a tuple in its own slide when the tick is late.
        into_slide = min((self.clock.monotonic_s() - self._last_tick_s) / self.slide_interval, 1 - 1e-9)
        self._waiting.append((self._ticks + into_slide, tup))

    def process_tick(self, tup: Tuple) -> None:
        """Process the window that ends now, then ack the tuples that no later window holds."""
        self._ticks += 1
        self._last_tick_s = self.clock.monotonic_s()
        self._process_waiting()
        self._ack_before(self._ticks + 1 - self._slides)

    def finish(self) -> None:
        """Process a last window if tuples came since the last tick, and ack everything."""
        if self._waiting and self._waiting[-1][0] >= self._ticks:
            self._process_waiting()
        self._ack_before(float("inf"))

    def _process_waiting(self) -> None:
        now_s = self.clock.wall_s()
        self.processWindow(WindowContext(now_s - self.window_duration, now_s), [tup for _, tup in self._waiting])

    def _ack_before(self, arrival: float) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] < arrival:
            self.ack(waiting.popleft()[1])

    @classmethod
    def _times_s(cls, config: Mapping[str, object], place: str) -> tuple[float, float]:
        duration_s = cls._time_s(config, cls.WINDOW_DURATION_SECS, place)
        return duration_s, duration_s

    @staticmethod
    def _time_s(config: Mapping[str, object], key: str, place: str) -> float:
        if key not in config:
            msg = f"{place}: the duration of the window is missing; give config={{{key!r}: SECONDS}}"
            raise TopologyError(msg)
        seconds = _positive(config[key])
        if seconds is None:
            msg = f"{place}: {key} is {short_text(config[key])}; give a number of seconds above 0"
            raise TopologyError(msg)
        return seconds


class SlidingWindowBolt(WindowBolt):
    """Overlapping windows: implement `processWindow`.

    The configuration gives both times in seconds: ``config={SlidingWindowBolt.WINDOW_DURATION_SECS: 10,
    SlidingWindowBolt.WINDOW_SLIDEINTERVAL_SECS: 2}``. Without a slide, windows do not overlap.
    """

    WINDOW_DURATION_SECS: ClassVar[str] = "slidingwindowbolt_duration_secs"
    WINDOW_SLIDEINTERVAL_SECS: ClassVar[str] = "slidingwindowbolt_slideinterval_secs"

    @classmethod
    def _times_s(cls, config: Mapping[str, object], place: str) -> tuple[float, float]:
        duration_s = cls._time_s(config, cls.WINDOW_DURATION_SECS, place)
        if cls.WINDOW_SLIDEINTERVAL_SECS not in config:
            return duration_s, duration_s
        slide_s = cls._time_s(config, cls.WINDOW_SLIDEINTERVAL_SECS, place)
        if slide_s > duration_s:
            msg = (
                f"{place}: {cls.WINDOW_SLIDEINTERVAL_SECS} is {slide_s:g} s, above the duration {duration_s:g} s, "
                "so some tuples would be in no window; shorten it"
            )
            raise TopologyError(msg)
        return duration_s, slide_s


class TumblingWindowBolt(WindowBolt):
    """Windows that follow each other without overlap: implement `processWindow`.

    The configuration gives the duration in seconds: ``config={TumblingWindowBolt.WINDOW_DURATION_SECS: 10}``.
    """

    WINDOW_DURATION_SECS: ClassVar[str] = "tumblingwindowbolt_duration_secs"


def _positive(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None
