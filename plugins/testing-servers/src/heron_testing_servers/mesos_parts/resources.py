"""Amounts of resources as Mesos counts them: scalars and port ranges, each unreserved or reserved for a role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["UNRESERVED", "Resources"]

UNRESERVED = "*"
_PORTS = "ports"
_DIGITS = 3  # Mesos rounds scalars to thousandths
_LEAST = {"cpus": 0.01, "mem": 32.0}  # MIN_CPUS and MIN_MEM: the master offers no less


@dataclass(frozen=True)
class Resources:
    """An amount. Keys are the name and the role that it is reserved for, ``*`` if it is not reserved."""

    scalars: Mapping[tuple[str, str], float] = field(default_factory=dict)
    ports: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def parse(cls, messages: Iterable[Mapping[str, Any]]) -> Resources:
        """Add up `Resource` messages; the older format (`role`) and the newer one (`reservations`) mean the same."""
        scalars: dict[tuple[str, str], float] = {}
        ports: dict[str, frozenset[int]] = {}
        for each in messages:
            reservations = each.get("reservations") or [{"role": each.get("role", UNRESERVED)}]
            role = reservations[-1]["role"]
            if each["name"] == _PORTS:
                found = (range(int(one["begin"]), int(one["end"]) + 1) for one in each["ranges"]["range"])
                ports[role] = ports.get(role, frozenset()).union(*found)
            else:
                key = each["name"], role
                scalars[key] = round(scalars.get(key, 0.0) + float(each["scalar"]["value"]), _DIGITS)
        return cls(scalars, ports)

    def __add__(self, other: Resources) -> Resources:
        scalars, ports = dict(self.scalars), dict(self.ports)
        for key, value in other.scalars.items():
            scalars[key] = round(scalars.get(key, 0.0) + value, _DIGITS)
        for role, numbers in other.ports.items():
            ports[role] = ports.get(role, frozenset()) | numbers
        return Resources(scalars, ports)

    def __sub__(self, other: Resources) -> Resources:
        scalars = {key: round(value - other.scalars.get(key, 0.0), _DIGITS) for key, value in self.scalars.items()}
        ports = {role: numbers - other.ports.get(role, frozenset()) for role, numbers in self.ports.items()}
        return Resources({key: value for key, value in scalars.items() if value > 0}, ports)

    def __bool__(self) -> bool:
        return any(self.scalars.values()) or any(self.ports.values())

    def contains(self, other: Resources) -> bool:
        """Return whether this amount is enough for the other one."""
        return all(value <= self.scalars.get(key, 0.0) for key, value in other.scalars.items()) and all(
            numbers <= self.ports.get(role, frozenset()) for role, numbers in other.ports.items()
        )

    def for_role(self, role: str) -> Resources:
        """Return the part that a framework of the role may have: unreserved, or reserved for it."""
        allowed = {UNRESERVED, role}
        scalars = {key: value for key, value in self.scalars.items() if key[1] in allowed}
        return Resources(scalars, {key: numbers for key, numbers in self.ports.items() if key in allowed and numbers})

    def is_offered(self) -> bool:
        """Return whether it is enough for an offer."""
        return any(self.total(name) >= least for name, least in _LEAST.items())

    def total(self, name: str) -> float:
        """Return the sum of a scalar over all reservations."""
        return sum(value for (known, _), value in self.scalars.items() if known == name)

    def messages(self, allocated: str | None = None, *, refined: bool = False) -> list[dict[str, Any]]:
        """Return `Resource` messages: allocated to a role, in the format of RESERVATION_REFINEMENT if `refined`."""
        found: list[tuple[str, dict[str, Any]]] = []
        for (name, role), value in sorted(self.scalars.items()):
            found.append((role, {"name": name, "type": "SCALAR", "scalar": {"value": value}}))
        for role, numbers in sorted(self.ports.items()):
            if numbers:
                ranges = [{"begin": begin, "end": end} for begin, end in _ranges(sorted(numbers))]
                found.append((role, {"name": _PORTS, "type": "RANGES", "ranges": {"range": ranges}}))
        for role, message in found:
            if not refined:
                message["role"] = role
            elif role != UNRESERVED:
                message["reservations"] = [{"type": "STATIC", "role": role}]
            if allocated is not None:
                message["allocation_info"] = {"role": allocated}
        return [message for _, message in found]

    def summary(self) -> dict[str, Any]:
        """Return the totals by name, as the state of master and agents shows them."""
        names = {"cpus", "disk", "mem", *(name for name, _ in self.scalars)}
        found: dict[str, Any] = {name: self.total(name) for name in sorted(names)}
        numbers = sorted(frozenset().union(*self.ports.values()))
        if numbers:
            found[_PORTS] = "[" + ", ".join(f"{begin}-{end}" for begin, end in _ranges(numbers)) + "]"
        return found

    def __str__(self) -> str:
        scalars = [f"{name}({role}):{value:g}" for (name, role), value in sorted(self.scalars.items())]
        ports = [
            f"ports({role}):[" + ", ".join(f"{begin}-{end}" for begin, end in _ranges(sorted(numbers))) + "]"
            for role, numbers in sorted(self.ports.items())
            if numbers
        ]
        return "; ".join(scalars + ports) or "{}"


def _ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges of increasing numbers, with both ends."""
    found: list[tuple[int, int]] = []
    for each in numbers:
        if found and found[-1][1] == each - 1:
            found[-1] = (found[-1][0], each)
        else:
            found.append((each, each))
    return found
