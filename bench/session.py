"""One call of the bench: run the requested measurement, print it, and keep the findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rich.console import Console

from bench.against import compare, working_tree
from bench.bench_kind import Bench
from bench.findings import Findings, Pace
from bench.gate import checks_of, measure
from bench.profiling import findings_of, profile
from bench.records import BenchError
from bench.tables import checks_table, functions_table, parts_table, ratios_table, rows_table
from bench.throughput import Throughput
from bench.yardstick import measure_user_code

__all__ = ["Session"]


class Session:
    """The findings so far, and whether a bench failed. A failed bench does not stop the others."""

    def __init__(self, pace: Pace, keep: Callable[[Findings], None]) -> None:
        """`keep` receives all findings after each bench, so an interrupted call keeps its results."""
        self.findings = Findings()
        self.failed = False
        self._pace = pace
        self._keep = keep
        self._console = Console()

    def measure(self, benches: Sequence[Bench]) -> None:
        """Run each bench in turn."""
        for bench in benches:
            self._add(bench.name, partial(bench.run, self._pace))
        self._console.print(ratios_table(self.findings))

    def gate(self) -> None:
        """Run the gate, and fail if a bound of the floor is broken."""
        self._add("gate", partial(measure, self._pace), rows=False)
        checks = checks_of(self.findings.ratios)
        self._console.print(checks_table(checks))
        broken = sum(not each.holds for each in checks)
        self._console.print(f"{broken} of {len(checks)} bounds broken" if broken else f"all {len(checks)} bounds hold")
        self.failed |= bool(broken)

    def profile(self, benches: Sequence[Throughput]) -> None:
        """Profile one run of each bench in each of its modes."""
        for bench, mode in _in_modes(benches):
            self._add(f"{bench.name}, {mode}", partial(self._profile, bench, mode), rows=False)

    def compare(self, benches: Sequence[Throughput], revision: str) -> None:
        """Compare each bench in each of its modes: alternating runs of this tree's engine and the other's."""
        try:
            with working_tree(revision) as tree:
                for bench, mode in _in_modes(benches):
                    self._add(f"{bench.name}, {mode}", partial(compare, bench, mode, self._pace, (revision, tree)))
        except BenchError as error:
            self._fail(revision, error)
        self._console.print(ratios_table(self.findings))

    def _profile(self, bench: Throughput, mode: str) -> Findings:
        rate, roles = profile(bench, mode, self._pace)
        user_s = measure_user_code(bench.job.in_mode(mode), self._pace)
        self._console.print(f"{rate:,.0f} tuples/s while samples are taken")
        self._console.print(parts_table(roles))
        self._console.print(f"user code alone, without an engine: {user_s:.3f}")
        for role, found in roles.items():
            if found.functions:
                self._console.print(functions_table(role, found))
        return findings_of(bench, mode, roles)

    def _add(self, what: str, action: Callable[[], Findings], *, rows: bool = True) -> None:
        self._console.print(f"[bold]{what}[/] …")
        try:
            found = action()
        except BenchError as error:
            self._fail(what, error)
            return
        if rows:
            self._console.print(rows_table(found))
        self.findings.add(found)
        self._keep(self.findings)

    def _fail(self, what: str, error: BenchError) -> None:
        self.failed = True
        self._console.print(f"{what}: error: {error}", style="red", markup=False)


def _in_modes(benches: Sequence[Throughput]) -> Iterator[tuple[Throughput, str]]:
    for bench in benches:
        for mode in bench.modes:
            yield bench, mode
