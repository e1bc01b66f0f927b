"""``./dev bench -- [NAME...] [--quick]``: measure, print tables with ratios, and write results/latest.json."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from bench.bench_kind import Bench
from bench.benches import BENCHES, FILE_READ, SPARK, WORD_COUNT
from bench.engine import Engine
from bench.findings import Pace, read_findings, write_findings
from bench.peers.comparison import compare
from bench.peers.publication import PEER_RESULTS, RESULTS, publish
from bench.peers.report import details_of
from bench.records import BenchError
from bench.session import Session
from bench.throughput import Throughput

_ROOT = Path(__file__).resolve().parents[1]
_RESULTS = _ROOT / RESULTS
_INTERRUPTED = 143
_QUICK = Pace(warm_up_s=1.0, window_s=2.0, pairs=1)

_HELP = """Measure the named benches, or all.

\b
Spark              the benches on a Spark cluster; they need Spark and Java, and are not among "all"
gate               instead: compare the ratios that do not depend on the machine with floor.json
profile [NAME]...  instead: show where the processor time goes
report             instead: write the stored results into README.md, docs/performance.md and docs/images

\b
With --peers, five rounds or more, and without names, --quick, --set and --out, the results are stored in
results/peers.json, and the report is written.
"""


@click.command(help=_HELP)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--quick", is_flag=True, help="One short run of each bench: a test that it works, not of its speed.")
@click.option("--pairs", type=click.IntRange(min=1), help="Number of runs of each bench (default: 5).")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="An engine setting; repeatable.")
@click.option("--peers", is_flag=True, help="Instead: compare with other systems; names are systems, or none for all.")
@click.option("--against", metavar="REV", help="Compare with the engine of another revision.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write the findings to this file (default: results/latest.json, where the named benches replace their part).",
)
def main(
    names: tuple[str, ...],
    quick: bool,
    pairs: int | None,
    settings: tuple[str, ...],
    peers: bool,
    against: str | None,
    out: Path | None,
) -> None:
    """Run the benches, the gate, a profile, a report, or a comparison with another revision or other systems."""
    usual = _QUICK if quick else Pace()
    pace = replace(usual, pairs=pairs or usual.pairs, engine=Engine(settings))
    if peers:
        _compare(pace, names, out, stored=not (names or quick or settings or out or pace.pairs < Pace().pairs))
        return
    if names == ("report",):
        _publish()
        return
    measures = not against and names[:1] not in (("gate",), ("profile",))
    path = out or (_RESULTS if measures and not quick else None)
    before = read_findings(_RESULTS) if measures and names and not out else None
    session = Session(pace, lambda findings: write_findings(findings, path, pace, before) if path else None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_INTERRUPTED))  # SIGTERM must also end the running topology
    if names[:1] == ("gate",):
        session.gate()
    elif names[:1] == ("profile",):
        session.profile(_throughputs(names[1:]) or [WORD_COUNT])
    elif against:
        session.compare(_throughputs(names) or [WORD_COUNT, FILE_READ], against)
    else:
        session.measure(_chosen(names) or BENCHES)
    sys.exit(1 if session.failed else 0)


def _compare(pace: Pace, names: Sequence[str], out: Path | None, *, stored: bool) -> None:
    try:
        found = compare(pace, names, click.echo)
    except BenchError as error:
        raise click.ClickException(str(error)) from error
    path = _ROOT / PEER_RESULTS if stored else out
    if path:
        found.write(path)
    for line in details_of(found):
        click.echo(line)
    if stored:
        _publish()


def _publish() -> None:
    try:
        publish(_ROOT, click.echo)
    except BenchError as error:
        raise click.ClickException(str(error)) from error


def _chosen(names: Sequence[str]) -> list[Bench]:
    by_name = {bench.name.lower(): [bench] for bench in (*BENCHES, *SPARK)} | {"spark": list(SPARK)}
    unknown = [name for name in names if name.lower() not in by_name]
    if unknown:
        known = ", ".join([*(bench.name for bench in (*BENCHES, *SPARK)), "Spark"])
        msg = f"there is no bench {unknown[0]!r}; the benches are {known}"
        raise click.UsageError(msg)
    return [bench for name in names for bench in by_name[name.lower()]]


def _throughputs(names: Sequence[str]) -> list[Throughput]:
    chosen = _chosen(names)
    others = [bench.name for bench in chosen if not isinstance(bench, Throughput)]
    if others:
        msg = f"{others[0]} does not measure throughput; choose another"
        raise click.UsageError(msg)
    return [bench for bench in chosen if isinstance(bench, Throughput)]


if __name__ == "__main__":
    main()
