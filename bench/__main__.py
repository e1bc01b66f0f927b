"""``python -m bench [NAME...] [--quick]``: measures, prints a table with ratios, and writes results/latest.json."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from bench.bench_kind import Bench
from bench.benches import BENCHES
from bench.findings import Findings, Pace, write_findings
from bench.records import BenchError

_RESULTS = Path(__file__).resolve().parent / "results" / "latest.json"
_QUICK = Pace(warm_up_s=1.0, window_s=2.0, pairs=1)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--quick", is_flag=True, help="One short run of each: to see whether it works, not how fast it is.")
@click.option("--pairs", type=click.IntRange(min=1), help="How often each is measured (default: 5).")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="An engine setting; repeatable.")
@click.option("--out", type=click.Path(path_type=Path), default=_RESULTS, help="Where to write the results.")
def main(names: tuple[str, ...], quick: bool, pairs: int | None, settings: tuple[str, ...], out: Path) -> None:
    """Measures the named benches, or all."""
    usual = _QUICK if quick else Pace()
    pace = Pace(usual.warm_up_s, usual.window_s, pairs or usual.pairs, settings)
    console, findings, failed = Console(), Findings(), False
    for bench in _chosen(names):
        console.print(f"[bold]{bench.name}[/] …")
        try:
            found = bench.run(pace)
        except BenchError as error:
            failed = True
            console.print(f"{bench.name}: error: {error}", style="red", markup=False)
            continue
        console.print(_table(found))
        findings.add(found)
    if findings.ratios:
        console.print(_ratios(findings))
    write_findings(findings, out, pace)
    sys.exit(1 if failed else 0)


def _chosen(names: tuple[str, ...]) -> list[Bench]:
    by_name = {bench.name.lower(): bench for bench in BENCHES}
    unknown = [name for name in names if name.lower() not in by_name]
    if unknown:
        known = ", ".join(bench.name for bench in BENCHES)
        msg = f"no bench {unknown[0]!r}; there are {known}"
        raise click.UsageError(msg)
    return [by_name[name.lower()] for name in names] or list(BENCHES)


def _table(findings: Findings) -> Table:
    table = Table("subject", "runs", box=None)
    table.add_column("value", justify="right")
    table.add_column("unit")
    table.add_column("spread", justify="right")
    for row in findings.rows:
        value = f"{row.value:,.0f}" if row.value >= 1000 else f"{row.value:.3g}"
        table.add_row(row.subject, str(row.runs), value, row.unit, f"{row.spread:.0%}" if row.runs > 1 else "")
    return table


def _ratios(findings: Findings) -> Table:
    table = Table("ratio", box=None)
    table.add_column("value", justify="right")
    for name, value in findings.ratios.items():
        table.add_row(name, f"{value:.3f}")
    return table


if __name__ == "__main__":
    main()
