"""How often and when a spout's failed roots are emitted again, by its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heron.api.api_constants import TOPOLOGY_REPLAY_ATTEMPTS, TOPOLOGY_REPLAY_BACKOFF_SECS, TOPOLOGY_REPLAY_BYTES
from heron.api.config import setting
from heron.api.definition import ComponentKind, TopologyDefinition

__all__ = ["LONGEST_BACKOFF_S", "ReplayPolicy", "replays_somewhere"]

LONGEST_BACKOFF_S = 30.0


@dataclass(frozen=True, slots=True)
class ReplayPolicy:
    """A root is emitted again up to `attempts` times; `most_bytes` is the budget of a task for the values it keeps."""

    attempts: int
    first_backoff_s: float
    most_bytes: int

    @classmethod
    def of(cls, config: Mapping[str, object]) -> ReplayPolicy | None:
        """The policy of a spout with this configuration; None if it replays failed roots itself."""
        attempts = setting(config, TOPOLOGY_REPLAY_ATTEMPTS)
        if not isinstance(attempts, int):
            return None
        backoff_s, most_bytes = setting(config, TOPOLOGY_REPLAY_BACKOFF_SECS), setting(config, TOPOLOGY_REPLAY_BYTES)
        return cls(attempts, float(str(backoff_s)), int(str(most_bytes)))

    def wait_s(self, failures: int) -> float:
        """The wait after this number of failures."""
        doublings = min(max(0, failures - 1), 40)  # a float holds 2 ** 40, and the longest wait comes much earlier
        return min(LONGEST_BACKOFF_S, self.first_backoff_s * 2.0**doublings)


def replays_somewhere(topology: TopologyDefinition) -> bool:
    """Whether any spout of a topology has a policy, so that tasks tell why they failed a tuple."""
    spouts = [each for each in topology.components if each.kind is ComponentKind.SPOUT]
    return any({**topology.config, **each.config}.get(TOPOLOGY_REPLAY_ATTEMPTS) is not None for each in spouts)
