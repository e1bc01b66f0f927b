"""A bench topology with its arguments, as the bench knows it: which component is first and last, and what it sends."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from types import ModuleType

from bench.records import BenchError, Records
from bench.trial import TOPOLOGIES
from heron.api import TopologyBuilder
from heron.api.definition import ComponentKind, TopologyDefinition

__all__ = ["LAST", "Job"]

LAST = "last"
"""The component at which tuples are counted, in every bench topology."""


@dataclass(frozen=True, slots=True)
class Job:
    """`topology` is a module in the folder of bench topologies."""

    topology: str
    arguments: tuple[str, ...] = ()

    def builder(self, folder: str, *more: str) -> TopologyBuilder:
        """The topology, in this process."""
        found: TopologyBuilder = self._module().topology(["--folder", folder, *self.arguments, *more])
        return found

    def definition(self) -> TopologyDefinition:
        """What it is made of."""
        return self.builder("unused").definition()

    def last_tasks(self) -> int:
        """How many tasks count tuples."""
        return self.definition().component(LAST).parallelism

    def check(self, records: Records, executed: int) -> int:
        """How many tuples came, once they have been compared with what was sent, by key.

        Raises:
            BenchError: when any count differs, or the engine's own count (`executed`) does.
        """
        spout = next(each.name for each in self.definition().components if each.kind is ComponentKind.SPOUT)
        if spout == LAST:
            return executed
        came = records.check(spout, LAST, self._module().EXPECTED)
        if came != executed:
            msg = f"{self.topology}: {came} tuples came to the last bolt, the engine counted {executed}"
            raise BenchError(msg)
        return came

    def _module(self) -> ModuleType:
        if str(TOPOLOGIES) not in sys.path:
            sys.path.insert(0, str(TOPOLOGIES))
        return importlib.import_module(self.topology)
