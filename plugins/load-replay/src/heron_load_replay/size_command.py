"""``heron size``: how many tasks and cores a latency needs under a captured load, checked by a second replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from heron.api.definition import TopologyDefinition
from heron.errors import TopologyFailedError, UsageError
from heron_cli.commands.completion import complete_file
from heron_cli.commands.options import ChoiceOptions, choice_options, profile_option, verbose_option
from heron_cli.view.text import echo
from heron_load_replay.load_description import LoadDescription
from heron_load_replay.replay_result import TRACKING, ReplayResult, result_lines
from heron_load_replay.replayed_topology import ReplayTerms, tracks_acks
from heron_load_replay.replaying import ReplayTarget, replay_load, system_terms
from heron_load_replay.sizing import ReplayObserver, SizeAdvice, size_for

__all__ = ["size"]


@click.command(epilog="Exit codes: 0 the sized topology meets the objective, 1 it does not, 2 wrong usage.")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.argument("target", metavar="TOPOLOGY[:NAME]", shell_complete=complete_file)
@click.argument("arguments", metavar="[-- ARGS]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--p99",
    "p99_ms",
    type=click.FloatRange(min=0.0, min_open=True),
    required=True,
    metavar="MS",
    help="The time within which 99 % of the tuples shall be complete.",
)
@click.option("--speed", metavar="FACTOR", help="The times of the file, 2x as fast; the default is 1x.")
@click.option("--open", "rate", type=click.FloatRange(min=0.0, min_open=True), metavar="RATE", help="So many tuples/s.")
@profile_option("The profile under which it runs.")
@choice_options()
@verbose_option
@click.pass_context
def size(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    file: Path,
    target: str,
    arguments: tuple[str, ...],
    p99_ms: float,
    speed: str | None,
    rate: float | None,
    profile: str,
    options: ChoiceOptions,
    verbose: bool,
) -> None:
    """Says how many tasks the bolts of TOPOLOGY need, and how many cores, under the load in FILE.

    It replays the load, computes the tasks with the model of the health manager, and replays it again with these tasks.
    The second replay shows whether the model was right.
    """
    from heron_load_replay.load_file import read_description  # noqa: PLC0415  # it imports Arrow, which other commands need not wait for

    load = read_description(file)
    terms = system_terms(file, speed, rate, None)
    run = ReplayTarget(target, arguments, options.choose(profile), None, verbose)
    advice, result = _observed(run, terms, load, p99_ms / 1e3)
    if advice.plan is None:
        msg = f"no number of tasks meets a p99 of {p99_ms:g} ms: {advice.reason}"
        raise TopologyFailedError(msg)
    wanted = {name: tasks for name, tasks in advice.plan.items() if name not in load.spouts}
    changed = {name: tasks for name, tasks in wanted.items() if tasks != advice.present[name]}
    echo(_advice_text(wanted, advice, changed))
    if changed:
        _, result = replay_load(run, replace(terms, parallelism=changed), load)
    for line in result_lines(result):
        echo(line)
    measured_ms = 1e3 * result.latency_s.get("p99", float("inf"))
    met = result.is_whole and measured_ms <= p99_ms
    echo(f"p99 expected {1e3 * advice.p99_s:.1f} ms, measured {measured_ms:.1f} ms, wanted {p99_ms:g} ms")
    context.exit(int(not met))


def _observed(
    run: ReplayTarget, terms: ReplayTerms, load: LoadDescription, p99_s: float
) -> tuple[SizeAdvice, ReplayResult]:
    """Replay once, and return the advice and the result.

    Raises:
        UsageError: when the topology tracks no acks: then nobody measures a latency.
        TopologyFailedError: when the replay was too short to tell.
    """
    with ReplayObserver(run.choice) as observer:

        def replaced(definition: TopologyDefinition) -> None:
            if not tracks_acks(definition):
                msg = f"the topology tracks no acks; if its bolts ack, give `--set {TRACKING}`"
                raise UsageError(msg)
            observer.begin(definition.name)

        code, result = replay_load(run, terms, load, replaced)
    advice = size_for(observer.observations, p99_s)
    if code or advice is None:
        msg = "the replay has shown too little: it has to run for at least 15 s; capture more seconds"
        raise TopologyFailedError(msg)
    return advice, result


def _advice_text(wanted: Mapping[str, int], advice: SizeAdvice, changed: Mapping[str, int]) -> str:
    tasks = ", ".join(f"{name} {number}" for name, number in sorted(wanted.items()))
    how = "; checked by a second replay" if changed else "; these are its present tasks"
    return f"tasks: {tasks}; their work keeps {advice.cores:.2f} cores busy{how}"
