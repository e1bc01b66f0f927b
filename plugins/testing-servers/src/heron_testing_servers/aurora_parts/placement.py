"""Where Aurora's test server puts a task: what a config wants, what a host has left, and why a host does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["TIERS", "Host", "Wanted", "is_preferred", "quota_problem", "vetoes"]

TIERS = {
    "preferred": {"preemptible": "false", "revocable": "false"},
    "preemptible": {"preemptible": "true", "revocable": "false"},
    "revocable": {"preemptible": "true", "revocable": "true"},
}
"""The tiers of the tiers.json that Aurora ships."""

_INSUFFICIENT, _MISMATCH = 1_000, 10_000  # how much a veto weighs; the nearest fit has the least
_NAMES = {"cpus": ("CPU", "core(s)"), "ram": ("RAM", "MB"), "disk": ("disk", "MB")}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Amounts: cores, MB of memory and of disk, and ports by their names."""

    cpus: float = 0.0
    ram: float = 0.0
    disk: float = 0.0
    ports: tuple[str, ...] = ()

    @classmethod
    def by(cls, config: Any) -> Wanted:  # noqa: ANN401 - a struct of thrift
        """Return what one task of a `TaskConfig` needs."""
        found = {"cpus": 0.0, "ram": 0.0, "disk": 0.0}
        names = {"numCpus": "cpus", "ramMb": "ram", "diskMb": "disk"}
        ports = []
        for each in config.resources or ():
            for field_name, name in names.items():
                found[name] += getattr(each, field_name) or 0
            if each.namedPort is not None:
                ports.append(each.namedPort)
        return cls(**found, ports=tuple(sorted(ports)))

    def __add__(self, other: Wanted) -> Wanted:
        return Wanted(self.cpus + other.cpus, self.ram + other.ram, self.disk + other.disk, self.ports + other.ports)


@dataclass(slots=True)
class Host:
    """A machine with an agent. `attributes` has values by name; `mode` is ``up``, ``partitioned`` or ``down``."""

    name: str
    hostname: str
    port: int
    total: Wanted
    first_port: int
    last_port: int
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    mode: str = "up"
    gone_at_s: float = 0.0


def vetoes(config: Any, host: Host, on_host: Sequence[Any], of_job: Iterable[Host]) -> list[tuple[int, str]]:  # noqa: ANN401
    """Return why a task does not fit on a host, with weights; nothing if it fits.

    Args:
        config: of the task.
        host: the host.
        on_host: the configs of the tasks that it has.
        of_job: the hosts of the active tasks of the same job.
    """
    wanted, used = Wanted.by(config), sum((Wanted.by(each) for each in on_host), Wanted())
    left = {
        "CPU": host.total.cpus - used.cpus - wanted.cpus,
        "RAM": host.total.ram - used.ram - wanted.ram,
        "disk": host.total.disk - used.disk - wanted.disk,
        "ports": host.last_port - host.first_port + 1 - len(used.ports) - len(wanted.ports),
    }
    found = [(_INSUFFICIENT, f"Insufficient: {name}") for name, value in left.items() if value < -1e-9]
    neighbours = list(of_job)
    for each in sorted(config.constraints or (), key=lambda one: str(one.name)):
        mine = _values(host, each.name)
        if each.constraint.value is not None:
            if bool(mine & set(each.constraint.value.values)) == bool(each.constraint.value.negated):
                found.append((_MISMATCH, f"Constraint not satisfied: {each.name}"))
        elif not mine:
            found.append((_MISMATCH, f"Constraint not satisfied: {each.name}"))
        elif sum(bool(_values(other, each.name) & mine) for other in neighbours) >= each.constraint.limit.limit:
            found.append((_MISMATCH, f"Limit not satisfied: {each.name}"))
    return found


def _values(host: Host, name: str) -> set[str]:
    return {host.hostname} if name == "host" else set(host.attributes.get(name, ()))


def is_preferred(config: Any) -> bool:  # noqa: ANN401
    """Return whether a task counts against the quota, may preempt others, and is not preempted."""
    return bool(TIERS[config.tier]["preemptible"] == "false")


def quota_problem(quota: Wanted, used: Wanted) -> str:
    """Return by how much a quota is exceeded, in the words of Aurora; empty if it is not."""
    over = {name: getattr(used, name) - getattr(quota, name) for name in _NAMES}
    return "; ".join(
        f"{_NAMES[name][0]} quota exceeded by {value:.2f} {_NAMES[name][1]}"
        for name, value in over.items()
        if value > 1e-9
    )
