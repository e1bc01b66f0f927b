"""A topology that is observed: the input of the contract suites of health policies and their parts."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from heron.spi.health_values import ComponentShape, Observation, Sample, Subscription, TopologyShape

__all__ = ["busy_topology", "odd_topology"]

_NAMES = (
    "task-time-s",
    "execute-count",
    "emit-count",
    "consumed-bytes",
    "in-queue-bytes",
    "outlet-bytes",
    "backlog",
    "host-cpu-s",
)


def busy_topology(tasks: int = 4, moments: int = 4) -> list[Observation]:
    """Return observations, one per second, of a spout that feeds a bolt whose tasks have no time to spare.

    The bolt may have at most twice as many tasks. Back pressure holds the spout for half of the time.
    """
    places = {task: 1 + task % 3 for task in range(2, tasks + 2)}
    bolt = ComponentShape("work", "bolt", places, (Subscription("source", "default"),), most=2 * tasks)
    shape = TopologyShape("busy", (ComponentShape("source", "spout", {1: 1}), bolt))
    return [Observation(float(at), shape, tuple(_samples(shape)), culprits=frozenset({2})) for at in range(moments)]


def _samples(shape: TopologyShape) -> list[Sample]:
    found = []
    for component in shape.components:
        for task, container in component.tasks.items():
            base = Sample("", 1e6, component.name, task, container, f"{component.name}-{task}")
            spout = component.kind == "spout"
            uses = {"user-cpu": 0.01, "throttled": 0.5, "input": 0.49} if spout else {"user-cpu": 0.99, "engine": 0.01}
            for use, share in uses.items():
                found.append(structs.replace(base, name="task-time-s", labels={"use": use}, rate_per_s=share))
            rate = 1000.0 if spout else 1000.0 / component.parallelism
            found.append(structs.replace(base, name="emit-count", labels={"stream": "default"}, rate_per_s=rate))
            if not spout:
                labels = {"component": "source", "stream": "default"}
                found.append(structs.replace(base, name="execute-count", labels=labels, rate_per_s=rate))
                found.append(structs.replace(base, name="consumed-bytes", value=1e7, rate_per_s=10 * rate))
            found.append(structs.replace(base, name="in-queue-bytes", value=1e5))
    return found


def odd_topology(wrong: float) -> list[Observation]:
    """Return observations with that value in many metrics.

    Some metrics are missing, one moment is late, and there are tasks and containers that the plan does not have.
    """
    observations = busy_topology()
    lost = [each for each in observations[1].samples if each.name != "execute-count"]
    odd = [Sample(name, wrong, "work", 99, 9, "work-99", rate_per_s=wrong) for name in _NAMES]
    odd += [structs.replace(each, value=wrong, rate_per_s=None) for each in observations[2].samples]
    late = replace(observations[3], at_s=observations[0].at_s)
    mixed = [observations[0], replace(observations[1], samples=tuple(lost)), late]
    mixed.append(replace(observations[2], samples=tuple(odd), restarts={2: 5}, silent={1: 4.0, 77: 1.0}))
    return mixed
