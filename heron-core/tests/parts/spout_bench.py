"""A spout on its task thread, without sockets."""

from __future__ import annotations

from collections.abc import Callable

from heron.api.definition import GroupingKind
from heron.api.spout import Spout
from heron.driver_kit.signals import Signals
from heron.instance.gateway.gateway import Gateway
from heron.instance.spout_runner import SpoutRunner
from heron.instance.task import Task
from heron.ipc.envelope import Envelope
from heron.ipc.frames.frame import SegmentKind, parse_segment
from heron.kernel.settings import EngineSettings
from heron.planner.physical_plan import PhysicalPlan, TopologyState
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from parts import decoded_rows, instance_spec

__all__ = ["SpoutBench", "When", "spout_plan"]


class When(Signals):
    """Asks to stop when a condition holds; catches nothing."""

    def __init__(self, condition: Callable[[], bool]) -> None:
        self._condition = condition

    @property
    def stop_requested(self) -> bool:
        return self._condition()


def spout_plan(
    version: int = 1, state: TopologyState = TopologyState.RUNNING, sinks: tuple[int, ...] = (2,)
) -> PhysicalPlan:
    sink = bolt("sink", subscription("spout", GroupingKind.ALL), parallelism=len(sinks))
    definition = topology(spout("spout", stream("v")), sink)
    return physical_plan(definition, {"spout": (1,), "sink": sinks}, version=version, state=state)


class SpoutBench:
    """A spout task; the test reads its data-out queue."""

    def __init__(
        self,
        component: type[Spout],
        until: Callable[[SpoutBench], bool],
        plan: PhysicalPlan | None = None,
        runner: type[SpoutRunner] = SpoutRunner,
    ) -> None:
        spec = instance_spec("spout", 1)
        settings = EngineSettings()
        self.gateway = Gateway(spec, settings)
        self.task = Task(spec, settings, self.gateway, plan or spout_plan())
        self.runner = runner(self.task, When(lambda: until(self)), component)

    def output(self) -> list[object]:
        """Plan version, destinations and values (or ``"END"``) of each segment, and the phase of each report."""
        found: list[object] = []
        for item in self.gateway.data_out.items:
            if isinstance(item, Envelope):
                found.append(item.task_report.phase)
                continue
            for data in item[0]:
                head = parse_segment(data, 0)
                rows = "END" if head.kind == SegmentKind.MARKER else [row[0] for row in decoded_rows(data)]
                found.append((head.plan_version, head.destinations, rows))
        return found

    def rows(self) -> list[object]:
        """All emitted values."""
        return [row for each in self.output() if isinstance(each, tuple) and each[2] != "END" for row in each[2]]
