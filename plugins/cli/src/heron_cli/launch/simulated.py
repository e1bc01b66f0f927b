"""``heron run --simulate``: the topology in this process, where breakpoints work."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, cast

from heron.api.definition import TopologyDefinition
from heron.clock import monotonic_s
from heron.driver_kit.loading import load_object
from heron.kernel.manifest import PackageManifest
from heron.spi.driver import DriverRef
from heron_cli.launch.interrupts import insistent_interrupts
from heron_cli.launch.prepare import Prepared
from heron_cli.launch.report import Counts, RunReport, component_reports, write_report
from heron_cli.launch.run_request import RunRequest
from heron_cli.launch.submitter import manifest_of, new_topology_id

__all__ = ["run_simulated"]

_EXIT_INTERRUPTED = 130


class _Result(Protocol):
    @property
    def state(self) -> str: ...
    @property
    def components(self) -> Mapping[str, Counts]: ...
    @property
    def error(self) -> str: ...


class _Simulate(Protocol):
    def __call__(
        self,
        definition: TopologyDefinition,
        package_dir: Path,
        manifest: PackageManifest,
        *,
        timeout_s: float | None,
        serializers: tuple[DriverRef, ...],
    ) -> _Result: ...


def run_simulated(request: RunRequest, prepared: Prepared) -> int:
    """Runs the topology in this process and returns the command's exit code."""
    simulate = cast("_Simulate", load_object("heron_simulator.simulator:simulate"))
    loaded = prepared.loaded
    counts: Mapping[str, Counts] = {}
    state, error, exit_code = "killed", "interrupted", _EXIT_INTERRUPTED
    try:
        with insistent_interrupts():
            result = simulate(
                loaded.definition,
                loaded.root,
                manifest_of(loaded),
                timeout_s=request.timeout_s,
                serializers=prepared.serializers,
            )
        counts, state, error = result.components, result.state, result.error
        exit_code = 0 if state == "finished" else 1
    except KeyboardInterrupt:
        pass
    elapsed_s = monotonic_s() - request.started_s
    name = loaded.definition.name
    report = RunReport(
        name, new_topology_id(name), state, elapsed_s, None, component_reports(loaded.definition, counts)
    )
    if request.report:
        write_report(report, request.report)
    reason = f": {error}" if error and state != "finished" else ""
    print(f"{name} {state} in the simulator after {elapsed_s:.1f} s{reason}", file=sys.stderr)
    return exit_code
