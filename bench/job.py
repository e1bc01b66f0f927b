"""A bench topology with its arguments: its first and last component, and the tuples that it sends."""

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
"""The component that counts tuples, in every bench topology."""

ATMOST, ATLEAST = MODES = ("atmost", "atleast")

_ATLEAST_ARGUMENT = "--atleast"
_LOADING_S = 0.2  # loading numpy takes 0.25 s of processor time, on two cores or more


@dataclass(frozen=True, slots=True)
class Job:
    """`topology` is a module in the folder of bench topologies."""

    topology: str
    arguments: tuple[str, ...] = ()

    @property
    def acked(self) -> bool:
        """Whether its tuples have ids, are anchored and are acked."""
        return _ATLEAST_ARGUMENT in self.arguments

    def in_mode(self, mode: str) -> Job:
        """Return the same job with this delivery mode; ``atleast`` selects the classes with ids, anchors and acks."""
        plain = tuple(each for each in self.arguments if each != _ATLEAST_ARGUMENT)
        return replace(self, arguments=(*plain, _ATLEAST_ARGUMENT) if mode == ATLEAST else plain)

    def builder(self, folder: str, *more: str) -> TopologyBuilder:
        """Build the topology in this process."""
        found: TopologyBuilder = self._module().topology(["--folder", folder, *self.arguments, *more])
        return found

    def definition(self) -> TopologyDefinition:
        """Return the definition of the topology."""
        return self.builder("unused").definition()

    def last_tasks(self) -> int:
        """Return the number of tasks that count tuples."""
        return self.definition().component(LAST).parallelism

    def warm_up_s(self) -> float:
        """Return additional seconds of warm-up: each task that tracks acks loads numpy at its first use."""
        tasks = sum(each.parallelism for each in self.definition().components)
        return _LOADING_S * tasks if self.acked else 0.0

    def check(self, records: Records, report: Mapping[str, Mapping[str, int]]) -> int:
        """Compare the received tuples with the sent ones, by key, and return their number; `report` is the engine's.

        Raises:
            BenchError: when a count differs, the engine's own count differs, or a root was not acked.
        """
        spout = self._spout()
        if spout == LAST:
            return report[LAST]["emitted"]
        came, executed = self.compare(records), report[LAST]["executed"]
        if came != executed:
            msg = f"{self.topology}: the last bolt received {came} tuples, but the engine counted {executed}"
            raise BenchError(msg)
        emitted, acked = report[spout]["emitted"], report[spout]["acked"]
        roots = emitted // getattr(self._module(), "ROWS", 1)  # a batch of columns is one root
        if self.acked and acked != roots:
            msg = f"{self.topology}: {acked} of {roots} roots were acked"
            raise BenchError(msg)
        return came

    def compare(self, records: Records) -> int:
        """Compare the received tuples with the sent ones, by key, and return their number.

        Raises:
            BenchError: when a count differs.
        """
        return records.check(self._spout(), LAST, self._module().EXPECTED)

    def expected(self) -> dict[str, int]:
        """Return how often each key occurs in a block."""
        found: dict[str, int] = self._module().EXPECTED
        return found

    def _spout(self) -> str:
        return next(each.name for each in self.definition().components if each.kind is ComponentKind.SPOUT)

    def _module(self) -> ModuleType:
        if str(TOPOLOGIES) not in sys.path:
            sys.path.insert(0, str(TOPOLOGIES))
        return importlib.import_module(self.topology)
