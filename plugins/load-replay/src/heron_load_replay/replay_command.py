"""``heron replay``: runs a topology under a captured load, and says how long its tuples take."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from heron_cli.commands.completion import complete_file
from heron_cli.commands.options import ChoiceOptions, choice_options, profile_option, verbose_option
from heron_cli.foreground.run_report import check_report_path
from heron_cli.view.text import echo
from heron_load_replay.replay_result import result_lines
from heron_load_replay.replaying import ReplayTarget, replay_load, system_terms

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
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.0, min_open=True),
    metavar="SECONDS",
    help="Stops it after that time, with exit code 1.",
)
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
    from heron_load_replay.load_file import read_description  # noqa: PLC0415  # it imports Arrow, which other commands need not wait for

    if report:
        check_report_path(report)
    load = read_description(file)
    terms = system_terms(file, speed, rate, pending)
    run = ReplayTarget(target, arguments, options.choose(profile), timeout, verbose)
    code, result = replay_load(run, terms, load)
    if report:
        report.write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    for line in result_lines(result):
        echo(line)
    context.exit(code or int(not result.is_whole))
