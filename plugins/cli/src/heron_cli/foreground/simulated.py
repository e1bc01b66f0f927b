"""``heron run --simulate``: the topology in this process, where breakpoints work."""

from __future__ import annotations

from collections.abc import Mapping

from heron.clock import monotonic_s
from heron_cli.foreground.run_report import Counts, RunReport, RunRequest, component_reports, write_report
from heron_cli.interrupts import Interrupts, repeated_interrupts
from heron_cli.launch.loading.loaded import LoadingTopology
from heron_cli.launch.prepare import prepare
from heron_cli.launch.submission import manifest_of, new_topology_id
from heron_cli.topologies.environment import find_profile
from heron_cli.view.text import echo
from heron_simulator.simulator import simulate

__all__ = ["run_simulated"]

_EXIT_INTERRUPTED = 130


def run_simulated(request: RunRequest, loading: LoadingTopology, interrupts: Interrupts) -> int:
    """Run the topology that is being loaded in this process; return the command's exit code.

    Raises:
        HeronError: before anything is started.
        KeyboardInterrupt: likewise, when the command was interrupted.
    """
    choice = request.choice
    profile = find_profile(choice)
    prepared = prepare(loading.result(interrupts.requested), profile, choice.overrides, without=choice.without)
    interrupts.give_back()
    loaded = prepared.loaded
    counts: Mapping[str, Counts] = {}
    state, error, exit_code = "killed", "interrupted", _EXIT_INTERRUPTED
    try:
        with repeated_interrupts():
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
    echo(f"{name} {state} in the simulator after {elapsed_s:.1f} s{reason}", err=True)
    return exit_code
