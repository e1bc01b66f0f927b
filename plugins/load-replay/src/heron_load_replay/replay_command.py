"""``heron replay``: runs a topology under a captured load, and says how long its tuples take."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
import msgspec

from heron.api.definition import ComponentKind
from heron.clock import monotonic_s, wall_s
from heron.errors import UsageError
from heron_cli.commands.completion import complete_file
from heron_cli.commands.options import ChoiceOptions, choice_options, profile_option, verbose_option
from heron_cli.foreground.foreground_run import run_in_foreground
from heron_cli.foreground.run_report import RunRequest, check_report_path
from heron_cli.interrupts import Interrupts
from heron_cli.view.text import echo
from heron_load_replay.arrival_times import parse_speed
from heron_load_replay.load_file import LoadDescription, read_description
from heron_load_replay.replay_result import ReplayResult, merged, read_results, result_lines
from heron_load_replay.replayed_topology import ReplayedTopology, ReplayTerms, tracks_acks

__all__ = ["replay"]


@click.command(
    epilog="Exit codes: 0 every tuple was acked, 1 some were not, 2 wrong usage and nothing was changed, 130 Ctrl-C.",
)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.argument("target", metavar="TOPOLOGY[:NAME]", shell_complete=complete_file)
@click.argument("arguments", metavar="[-- ARGS]", nargs=-1, type=click.UNPROCESSED)
@click.option("--speed", metavar="FACTOR", help="Open: the times of the file, 2x as fast; the default is 1x.")
@click.option(
    "--open", "rate", type=click.FloatRange(min=0.0, min_open=True), metavar="RATE", help="Open: so many tuples/s."
)
@click.option("--closed", "pending", type=click.IntRange(min=1), metavar="PENDING", help="Closed: trees per task.")
@profile_option("The profile under which it runs.")
@choice_options()
@click.option("--timeout", type=float, metavar="SECONDS", help="Stops it after that time, with exit code 1.")
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE", help="Writes the result, as JSON.")
@verbose_option
@click.pass_context
def replay(  # noqa: PLR0913, PLR0917 - one parameter for each option
    context: click.Context,
    file: Path,
    target: str,
    arguments: tuple[str, ...],
    speed: str | None,
    rate: float | None,
    pending: int | None,
    profile: str,
    options: ChoiceOptions,
    timeout: float | None,
    report: Path | None,
    verbose: bool,
) -> None:
    """Runs the TOPOLOGY of a Python file under the load in FILE, and measures latencies.

    Its spouts are replaced by ones that replay what `heron capture` has written to FILE. Its bolts run as they are,
    with all that they write elsewhere. The tuples of an open system are due at the times of the file, or at a fixed
    rate, and do not wait for each other. A latency begins when the tuple was due.
    """
    started_s, started_at_s = monotonic_s(), wall_s()
    _check(speed, rate, pending, timeout, report)
    load = read_description(file)
    choice = options.choose(profile)
    with tempfile.TemporaryDirectory(prefix="heron-replay-") as results:
        terms = _terms(file.resolve(), Path(results), speed, rate, pending)
        request = RunRequest(choice, timeout, None, simulate=False, started_s=started_s, started_at_s=started_at_s)
        with (
            Interrupts() as interrupts,
            ReplayedTopology(target, arguments, terms, load, choice.overrides, verbose=verbose) as loading,
        ):
            code = run_in_foreground(request, loading, interrupts)
        result = _result(loading, terms, load)
    if report:
        report.write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    for line in result_lines(result):
        echo(line)
    context.exit(code or int(not result.is_whole))


def _check(
    speed: str | None, rate: float | None, pending: int | None, timeout: float | None, report: Path | None
) -> None:
    if sum(each is not None for each in (speed, rate, pending)) > 1:
        msg = "--speed, --open and --closed are three systems; give one of them"
        raise UsageError(msg)
    if timeout is not None and not timeout > 0:
        msg = f"--timeout: {timeout:g} s is not above 0 s; give the seconds after which it is stopped"
        raise UsageError(msg)
    if report:
        check_report_path(report)


def _terms(file: Path, results: Path, speed: str | None, rate: float | None, pending: int | None) -> ReplayTerms:
    if pending is not None:
        return ReplayTerms(file, results, pending=pending)
    if rate is not None:
        return ReplayTerms(file, results, rate=rate)
    return ReplayTerms(file, results, speed=parse_speed(speed or "1x"))


def _result(loading: ReplayedTopology, terms: ReplayTerms, load: LoadDescription) -> ReplayResult:
    definition = loading.definition
    spouts = [each for each in definition.components if each.kind is ComponentKind.SPOUT]
    tasks = [(each.name, index) for each in spouts for index in range(each.parallelism)]
    results = read_results(terms.results, tasks)
    text = f"{terms.file.name}, {terms.text()}"
    return merged(definition.name, text, load.tuples, results, tracked=tracks_acks(definition))
