"""What ``heron run --simulate --seed`` calls: it runs the simulation in another interpreter, whose clock is replaced.

This module imports nothing that needs the extra ``seeds``, so that a missing distribution is named.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from heron.api.definition import TopologyDefinition
from heron.driver_kit.child_processes import spawn
from heron.errors import PluginError
from heron.kernel.role_spec import write_spec
from heron.planner.packing_plan import PackingPlan
from heron.spi.driver import DriverRef
from heron.state_nodes.plans import encode_plan

__all__ = ["ProgramSimulation", "ProgramSpec"]


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """The file that the child reads; `topology` and `packing` are documents, as in the state manager."""

    package: str
    topology: bytes
    packing: bytes
    seed: int
    faults: bool
    limit_s: float
    drivers: tuple[DriverRef, ...] = ()
    settings: dict[str, object] = field(default_factory=dict)


class ProgramSimulation:
    """The object of the entry point ``seeds`` in the group ``heron.simulation``."""

    @staticmethod
    def check_installed() -> None:
        """Raises PluginError, with the command that installs it, when the extra ``seeds`` is not installed."""
        if importlib.util.find_spec("greenlet") is None:
            msg = "--seed: the simulated machine needs greenlet: `pip install 'heron-testing[seeds]'`"
            raise PluginError(msg)

    @staticmethod
    def run(  # noqa: PLR0913 - all that a run follows from
        definition: TopologyDefinition,
        packing: PackingPlan,
        package: Path,
        *,
        settings: Mapping[str, object],
        drivers: tuple[DriverRef, ...],
        seed: int,
        faults: bool,
        limit_s: float,
    ) -> int:
        """Runs the topology of a package several times, and prints what differs; returns the exit code of the command.

        `limit_s` is the simulated time, after the last fault, in which the topology must end.

        Raises:
            PluginError: when the extra ``seeds`` is not installed.
        """
        ProgramSimulation.check_installed()
        spec = ProgramSpec(
            str(package), encode_plan(definition), encode_plan(packing), seed, faults, limit_s, drivers, dict(settings)
        )
        with tempfile.TemporaryDirectory(prefix="heron-seeded-") as folder:
            path = Path(folder, "program.json")
            write_spec(path, spec)
            words = [sys.executable, "-P", "-m", "heron_testing.seeded.authors", str(path)]
            child = spawn(words, stdout=subprocess.PIPE, env={"PYTHONHASHSEED": "0"})
            assert child.stdout is not None
            try:
                for line in child.stdout:
                    sys.stdout.write(line.decode(errors="replace"))
                    sys.stdout.flush()
            finally:
                child.terminate()  # after an interrupt; a child that has ended is not there
                code = child.wait()
        return code
