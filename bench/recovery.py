"""How long a topology under load takes to recover from the kill of a process, of each kind."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.campaign import Campaign
from chaos.errors import ChaosError
from chaos.fault_plan import COUNTS, Action, Fault, Kind, Victim
from chaos.world import World

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import ATLEAST
from bench.records import BenchError

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


@dataclass(frozen=True)
class Recovery(Bench):
    """Kills one after the other, each when the one before is over, at 10,000 lines a second, each acked.

    `chaos.recovery` says what is over when.
    """

    name: str

    def run(self, pace: Pace) -> Findings:
        """`Bench.run`."""
        findings = Findings()
        world = World(_RATE, options=pace.engine.options())
        try:
            with world:
                for kind, subject in _KILLS.items():
                    took_s = _kill(world, kind, max(_LEAST_KILLS, pace.pairs))
                    findings.rows.append(median_row(self.name, subject, "s", took_s, ATLEAST))
                    findings.rows.append(median_row(self.name, f"{subject}, longest", "s", [max(took_s)], ATLEAST))
                world.say_stop()
                world.wait_for_end()
        except ChaosError as error:
            msg = f"{self.name}: {error}"
            raise BenchError(msg) from error
        finally:
            world.remove()
        return findings


def _kill(world: World, kind: Kind, times: int) -> list[float]:
    """Each of the kind in turn; without the container of the topology manager, which is measured by itself."""
    campaign = Campaign(world)
    indices = range(1 if kind is Kind.EXECUTOR else 0, COUNTS[kind])
    plan = tuple(
        Fault(_CALM_S, Action.KILL, (Victim(kind, indices[number % len(indices)]),)) for number in range(times)
    )
    for fault in plan:
        campaign.run((fault,))
    return campaign.recover_s[kind]
