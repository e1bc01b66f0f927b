"""Measure how long a topology under load takes to recover from a kill, for each kind of process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
from chaos.campaign import Campaign
from chaos.chaos_run import ChaosRun
from chaos.errors import ChaosError
from chaos.fault_plan import COUNTS, Action, Fault, Kind, Victim
from chaos.leader import LeaderWatch, leading_pid

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import ATLEAST
from bench.records import BenchError
from heron.clock import monotonic_s

__all__ = ["Recovery"]

_RATE = 2_000  # 25,000 would fill two cores; the chaos runs measure that case
_LEAST_KILLS = 5
_KILLS = {
    Kind.SPOUT: "spout killed",
    Kind.BOLT: "bolt killed",
    Kind.STREAM_MANAGER: "stream manager killed",
    Kind.TOPOLOGY_MANAGER: "topology manager killed",
    Kind.EXECUTOR: "container killed",
}
_CALM_S = 1.0
_WHOLE_S = 30.0


@dataclass(frozen=True)
class Recovery(Bench):
    """Single kills, each after the recovery of the one before, at 2,000 lines a second, each acked.

    `chaos.recovery` defines when a process has recovered.
    """

    name: str

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        findings, times = Findings(), max(_LEAST_KILLS, pace.pairs)

        def note(subject: str, took_s: list[float]) -> None:
            findings.rows.append(median_row(self.name, subject, "s", took_s, ATLEAST))
            findings.rows.append(median_row(self.name, f"{subject}, longest", "s", [max(took_s)], ATLEAST))

        try:
            with _chaos_run(pace) as chaos_run:
                for kind, subject in _KILLS.items():
                    campaign = _kills(chaos_run, kind, times)
                    if kind in campaign.back_s:
                        note(f"{subject}, its task initialised", campaign.back_s[kind])
                    note(subject, campaign.recover_s[kind])
            with _chaos_run(pace, standbys=1) as chaos_run:
                note("leader killed, a standby leads", [_take_over(chaos_run) for _ in range(times)])
        except ChaosError as error:
            msg = f"{self.name}: {error}"
            raise BenchError(msg) from error
        return findings


@contextmanager
def _chaos_run(pace: Pace, standbys: int = 0) -> Iterator[ChaosRun]:
    """Run a topology, and check that it ends well."""
    chaos_run = ChaosRun(_RATE, standbys=standbys, options=pace.engine.options())
    try:
        with chaos_run:
            yield chaos_run
            chaos_run.stop_spouts()
            chaos_run.wait_for_end()
    finally:
        chaos_run.remove()


def _kills(chaos_run: ChaosRun, kind: Kind, times: int) -> Campaign:
    """Kill processes of the kind in turn, except the topology manager's container, which is measured separately."""
    campaign = Campaign(chaos_run)
    indices = range(1 if kind is Kind.EXECUTOR else 0, COUNTS[kind])
    plan = tuple(
        Fault(_CALM_S, Action.KILL, (Victim(kind, indices[number % len(indices)]),)) for number in range(times)
    )
    for fault in plan:
        campaign.run((fault,))
    return campaign


def _take_over(chaos_run: ChaosRun) -> float:
    """Return the seconds from the kill of the leader until another one answers and reports that every task runs."""
    chaos_run.until(
        lambda: chaos_run.is_whole() and leading_pid(chaos_run.state) > 0, _WHOLE_S, "a leader and a standby"
    )
    pid = leading_pid(chaos_run.state)
    psutil.Process(pid).kill()
    began_s = monotonic_s()
    watch = LeaderWatch(chaos_run.state, pid)
    try:
        chaos_run.until(lambda: watch.back_at_s is not None, _WHOLE_S, "a standby leads")
    finally:
        watch.close()
    return (watch.back_at_s or monotonic_s()) - began_s
