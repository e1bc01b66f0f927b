"""Runs a replay in the foreground, and reads what its spouts have measured."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from heron.api.definition import ComponentKind, TopologyDefinition
from heron.clock import monotonic_s, wall_s
from heron.errors import UsageError
from heron_cli.foreground.foreground_run import run_in_foreground
from heron_cli.foreground.run_report import RunRequest
from heron_cli.interrupts import Interrupts
from heron_cli.topologies.environment import ProfileChoice
from heron_load_replay.arrival_times import parse_speed
from heron_load_replay.load_description import LoadDescription
from heron_load_replay.replay_result import ReplayResult, merged, read_results
from heron_load_replay.replayed_topology import ReplayedTopology, ReplayTerms, tracks_acks

__all__ = ["ReplayTarget", "replay_load", "system_terms"]


@dataclass(frozen=True, slots=True)
class ReplayTarget:
    """What is replayed: ``FILE[:NAME]`` of a topology with its arguments, under a profile, for at most `timeout_s`."""

    file: str
    arguments: tuple[str, ...]
    choice: ProfileChoice
    timeout_s: float | None
    verbose: bool


def system_terms(file: Path, speed: str | None, rate: float | None, pending: int | None) -> ReplayTerms:
    """Return the system that the options of a command choose; the default is the speed of the file.

    Raises:
        UsageError: when they choose several, or the speed is no factor.
    """
    if sum(each is not None for each in (speed, rate, pending)) > 1:
        msg = "--speed, --open and --closed are three systems; give one of them"
        raise UsageError(msg)
    if pending is not None:
        return ReplayTerms(file.resolve(), Path(), pending=pending)
    if rate is not None:
        return ReplayTerms(file.resolve(), Path(), rate=rate)
    return ReplayTerms(file.resolve(), Path(), speed=parse_speed(speed or "1x"))


def replay_load(
    target: ReplayTarget,
    terms: ReplayTerms,
    load: LoadDescription,
    replaced: Callable[[TopologyDefinition], None] = lambda _: None,
) -> tuple[int, ReplayResult]:
    """Run the topology to its end; return the exit code of the run, and the result.

    `replaced` is called with the replayed topology before it starts, and may refuse it.

    Raises:
        HeronError: as `run_in_foreground`; also when the file does not fit the topology.
    """
    with tempfile.TemporaryDirectory(prefix="heron-replay-") as results:
        terms = replace(terms, results=Path(results))
        request = RunRequest(target.choice, target.timeout_s, None, False, monotonic_s(), wall_s())
        overrides = target.choice.overrides
        with (
            Interrupts() as interrupts,
            ReplayedTopology(target.file, target.arguments, terms, load, overrides, verbose=target.verbose) as loading,
        ):
            loading.replaced = replaced
            code = run_in_foreground(request, loading, interrupts)
        return code, _result(loading, terms, load)


def _result(loading: ReplayedTopology, terms: ReplayTerms, load: LoadDescription) -> ReplayResult:
    definition = loading.definition
    spouts = [each for each in definition.components if each.kind is ComponentKind.SPOUT]
    tasks = [(each.name, index) for each in spouts for index in range(each.parallelism)]
    results = read_results(terms.results, tasks)
    text = f"{terms.file.name}, {terms.text()}"
    return merged(definition.name, text, load.tuples, results, tracked=tracks_acks(definition))
