"""A bench topology with its arguments, as the bench knows it: which component is first and last, and what it sends."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType

from bench.records import BenchError, Records
from bench.trial import TOPOLOGIES
from heron.api import TopologyBuilder
from heron.api.definition import ComponentKind, TopologyDefinition

__all__ = ["ATLEAST", "ATMOST", "LAST", "MODES", "Job"]

LAST = "last"
"""The component at which tuples are counted, in every bench topology."""

ATMOST, ATLEAST = MODES = ("atmost", "atleast")

_ATLEAST_ARGUMENT = "--atleast"
_LOADING_S = 0.2  # a quarter of a second of processor time, and two cores or more


@dataclass(frozen=True, slots=True)
class Job:
    """`topology` is a module in the folder of bench topologies."""

    topology: str
    arguments: tuple[str, ...] = ()

    @property
    def acked(self) -> bool:
        """Whether its tuples have ids, are anchored and acked."""
        return _ATLEAST_ARGUMENT in self.arguments

    def in_mode(self, mode: str) -> Job:
        """The same with this delivery: of the classes those that give ids, anchor and ack."""
        plain = tuple(each for each in self.arguments if each != _ATLEAST_ARGUMENT)
        return replace(self, arguments=(*plain, _ATLEAST_ARGUMENT) if mode == ATLEAST else plain)

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

    def warm_up_s(self) -> float:
        """How much longer its warm-up is: each task that tracks acks loads numpy when it first needs it."""
        tasks = sum(each.parallelism for each in self.definition().components)
        return _LOADING_S * tasks if self.acked else 0.0

    def check(self, records: Records, report: Mapping[str, Mapping[str, int]]) -> int:
        """How many tuples came, once they have been compared with what was sent, by key; `report` is the engine's.

        Raises:
            BenchError: when any count differs, the engine's own does, or not every root was acked.
        """
        spout = self._spout()
        if spout == LAST:
            return report[LAST]["emitted"]
        came, executed = self.compare(records), report[LAST]["executed"]
        if came != executed:
            msg = f"{self.topology}: {came} tuples came to the last bolt, the engine counted {executed}"
            raise BenchError(msg)
        emitted, acked = report[spout]["emitted"], report[spout]["acked"]
        if self.acked and acked != emitted:
            msg = f"{self.topology}: {acked} of {emitted} roots were acked"
            raise BenchError(msg)
        return came

    def compare(self, records: Records) -> int:
        """How many tuples came, once they have been compared with what was sent, by key.

        Raises:
            BenchError: when any count differs.
        """
        return records.check(self._spout(), LAST, self._module().EXPECTED)

    def _spout(self) -> str:
        return next(each.name for each in self.definition().components if each.kind is ComponentKind.SPOUT)

    def _module(self) -> ModuleType:
        if str(TOPOLOGIES) not in sys.path:
            sys.path.insert(0, str(TOPOLOGIES))
        return importlib.import_module(self.topology)
