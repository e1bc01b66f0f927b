"""Windows in simulated time: exact, without waiting."""

from __future__ import annotations

from typing import Any

from heron.api import Grouping, Spout, TopologyBuilder, TumblingWindowBolt, Tuple, WindowContext
from heron_simulator import Simulation
from heron_testing.fake_clock import FakeClock


class NumberSpout(Spout):
    """Emits one number per call, forever."""

    outputs = ("number",)
    number = 0

    def next_tuple(self) -> None:
        self.number += 1
        self.emit([self.number])


class WindowBolt(TumblingWindowBolt):
    """Records the contents of its windows."""

    windows: list[tuple[float, list[Any]]]

    def processWindow(self, window_info: WindowContext, tuples: list[Tuple]) -> None:
        self.windows = getattr(self, "windows", [])
        self.windows.append((window_info.end, [tup.values[0] for tup in tuples]))


def test_windows_follow_the_simulations_clock() -> None:
    """A window's content depends only on the clock of the test, not on the machine."""
    builder = TopologyBuilder("windows")
    spout = builder.add_spout("numbers", NumberSpout, par=1)
    config = {TumblingWindowBolt.WINDOW_DURATION_SECS: 10}
    builder.add_bolt("window", WindowBolt, 1, {spout: Grouping.SHUFFLE}, config)
    clock = FakeClock(wall_s=0.0)
    with Simulation(builder, clock=clock) as simulation:
        simulation.step()
        simulation.step()
        simulation.advance(10)
        simulation.step()
        simulation.advance(10)
        window = simulation.component("window")
        assert isinstance(window, WindowBolt)
        ends, contents = zip(*window.windows, strict=True)
        assert ends == (10.0, 20.0)
        assert contents == ([1, 2, 3], [4, 5, 6])
