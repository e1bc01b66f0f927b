"""The sensor of hosts, containers and their stream managers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from heron.spi.health import Sensor
from heron.spi.health_values import Measurement, Observation, Subject
from heron_health_manager.sensors.window import Window, container_gauges, labels_of

__all__ = ["HostSensor"]


class HostSensor(Sensor):
    """Processors and memory of each container's host, and whether its stream manager keeps up and is reached."""

    metrics: ClassVar[frozenset[str] | None] = frozenset(
        {
            "host-cpu-s",
            "host-cpu-pressure-s",
            "container-throttled-s",
            "late-s",
            "cpu-wait-s",
            "container-memory-bytes",
            "container-memory-limit-bytes",
        }
    )

    def measure(self, window: Sequence[Observation]) -> Iterable[Measurement]:
        """`Sensor.measure`."""
        kept = Window.over(window)
        if kept.newest is None:
            return
        times = labels_of(kept.processes("host-cpu-s", "metricsmgr", "mode"))
        pressure = kept.processes("host-cpu-pressure-s", "metricsmgr")
        throttled = kept.processes("container-throttled-s", "metricsmgr")
        late = kept.processes("late-s", "stmgr")
        for key, waited in kept.processes("cpu-wait-s", "stmgr").items():
            if key in late:  # what the host takes from a stream manager is not its own slowness
                late[key] = max(0.0, late[key] - waited)
        for container in kept.newest.shape.containers():
            subject = Subject(container_id=container)
            modes = times.get(container, {})
            if total := sum(modes.values()):
                yield Measurement("host-busy-share", subject, modes.get("busy", 0.0) / total)
                yield Measurement("host-steal-share", subject, modes.get("steal", 0.0) / total)
            for name, rates in (
                ("host-pressure-share", pressure),
                ("container-throttled-share", throttled),
                ("stmgr-late-share", late),
            ):
                if (container, "") in rates:
                    # cgroups of version 1 add up the time of all processors
                    yield Measurement(name, subject, min(1.0, rates[container, ""]))
            if (silent_s := kept.newest.silent.get(container)) is not None:
                yield Measurement("silent-s", subject, silent_s)
            if (blocked_s := kept.newest.blocked.get(container)) is not None:
                yield Measurement("host-blocked-s", subject, blocked_s)
        yield from _memory(kept.newest)


def _memory(newest: Observation) -> Iterable[Measurement]:
    used_by, limits = container_gauges(newest, "container-memory-bytes", "container-memory-limit-bytes")
    for container in newest.shape.containers():
        used, limit = used_by.get(container), limits.get(container)
        if used is not None and limit:
            subject = Subject(container_id=container)
            yield Measurement("memory-share", subject, used / limit)
            yield Measurement("memory-limit-bytes", subject, limit)
