"""How long a topology under load takes to recover from the kill of a process, of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
from chaos.campaign import Campaign
from chaos.errors import ChaosError
from chaos.fault_plan import COUNTS, Action, Fault, Kind, Victim
from chaos.leader import LeaderWatch, leading_pid
from chaos.world import World

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import ATLEAST
from bench.records import BenchError
from heron.clock import monotonic_s

__all__ = ["Recovery"]

_RATE = 10_000
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
    """Kills one after the other, each when the one before is over, at 10,000 lines a second, each acked.

    `chaos.recovery` says what is over when.
    """

    name: str

    def run(self, pace: Pace) -> Findings:
        """`Bench.run`."""
        findings, times = Findings(), max(_LEAST_KILLS, pace.pairs)

        def note(subject: str, took_s: list[float]) -> None:
            findings.rows.append(median_row(self.name, subject, "s", took_s, ATLEAST))
            findings.rows.append(median_row(self.name, f"{subject}, longest", "s", [max(took_s)], ATLEAST))

        try:
            with _world(pace) as world:
                for kind, subject in _KILLS.items():
                    campaign = _kills(world, kind, times)
                    if kind in campaign.back_s:
                        note(f"{subject}, its task initialised", campaign.back_s[kind])
                    note(subject, campaign.recover_s[kind])
            with _world(pace, standbys=1) as world:
                note("leader killed, a standby leads", [_take_over(world) for _ in range(times)])
        except ChaosError as error:
            msg = f"{self.name}: {error}"
            raise BenchError(msg) from error
        return findings


@contextmanager
def _world(pace: Pace, standbys: int = 0) -> Iterator[World]:
    """A topology that runs, and ends well."""
    world = World(_RATE, standbys=standbys, options=pace.engine.options())
    try:
        with world:
            yield world
            world.say_stop()
            world.wait_for_end()
    finally:
        world.remove()


def _kills(world: World, kind: Kind, times: int) -> Campaign:
    """Each of the kind in turn; without the container of the topology manager, which is measured by itself."""
    campaign = Campaign(world)
    indices = range(1 if kind is Kind.EXECUTOR else 0, COUNTS[kind])
    plan = tuple(
        Fault(_CALM_S, Action.KILL, (Victim(kind, indices[number % len(indices)]),)) for number in range(times)
    )
    for fault in plan:
        campaign.run((fault,))
    return campaign


def _take_over(world: World) -> float:
    """From the kill of the leader until another one answers, and knows that every task runs."""
    world.until(lambda: world.is_whole() and leading_pid(world.state) > 0, _WHOLE_S, "a leader and a standby")
    pid = leading_pid(world.state)
    psutil.Process(pid).kill()
    began_s = monotonic_s()
    watch = LeaderWatch(world.state, pid)
    try:
        world.until(lambda: watch.back_at_s is not None, _WHOLE_S, "a standby leads")
    finally:
        watch.close()
    return (watch.back_at_s or monotonic_s()) - began_s
