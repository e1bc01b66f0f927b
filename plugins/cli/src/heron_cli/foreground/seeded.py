"""``heron run --simulate --seed``: the topology on simulated machines, whose order and faults a seed decides.

Another distribution simulates: its entry point in the group ``heron.simulation`` is called with the packed topology.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, cast

from heron.api.definition import TopologyDefinition
from heron.driver_kit.loading import load_object
from heron.kernel.package import pack
from heron.planner.packing_plan import PackingPlan
from heron.spi.driver import DriverRef
from heron_cli.catalog.other_plugins import simulation_entry
from heron_cli.foreground.run_report import RunRequest
from heron_cli.interrupts import Interrupts, repeated_interrupts
from heron_cli.launch.loading.loaded import LoadingTopology
from heron_cli.launch.prepare import prepare
from heron_cli.launch.submission import manifest_of
from heron_cli.profiles.overrides import engine_settings
from heron_cli.topologies.environment import find_profile

__all__ = ["check_simulation_installed", "run_seeded"]

_LIMIT_S = 120.0
_EXIT_INTERRUPTED = 130


class _Simulation(Protocol):
    """The object of the entry point."""

    def check_installed(self) -> None:
        """Raises PluginError when something that it needs is not installed."""
        ...

    def run(  # noqa: PLR0913 - all that a run follows from
        self,
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
        """Runs the topology, prints what differs, and returns the exit code."""
        ...


def check_simulation_installed() -> None:
    """Raise `PluginError`, with the command that installs it, when no simulation is installed."""
    _simulation().check_installed()


def run_seeded(request: RunRequest, loading: LoadingTopology, interrupts: Interrupts) -> int:
    """Run the topology that is being loaded on simulated machines; return the command's exit code.

    Raises:
        HeronError: before anything is started.
        KeyboardInterrupt: likewise, when the command was interrupted.
    """
    choice = request.choice
    profile = find_profile(choice)
    prepared = prepare(loading.result(interrupts.requested), profile, choice.overrides, without=choice.without)
    interrupts.give_back()
    loaded = prepared.loaded
    settings = engine_settings(profile.engine, loaded.definition, "stop").to_keys()
    with tempfile.TemporaryDirectory(prefix="heron-seeded-") as folder, repeated_interrupts():
        package = Path(folder, "package")
        pack(loaded.root, loaded.files, manifest_of(loaded), package)
        limit_s = _LIMIT_S if request.timeout_s is None else request.timeout_s
        try:
            return _simulation().run(
                loaded.definition,
                prepared.plan,
                package,
                settings=settings,
                drivers=(*prepared.serializers, *prepared.state_backends),
                seed=request.seed or 0,
                faults=request.faults,
                limit_s=limit_s,
            )
        except KeyboardInterrupt:
            return _EXIT_INTERRUPTED


def _simulation() -> _Simulation:
    return cast("_Simulation", load_object(simulation_entry(), "the simulation from seeds"))
