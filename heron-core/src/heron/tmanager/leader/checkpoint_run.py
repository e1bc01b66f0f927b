"""The run whose checkpoints are taken: its settings, its regions, and the value of its first plan. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from heron.api.api_constants import (
    TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS,
    TOPOLOGY_STATEFUL_START_FROM,
)
from heron.api.config import setting
from heron.api.definition import TopologyDefinition
from heron.checkpoints.manifest import CheckpointId
from heron.kernel.settings import EngineSettings
from heron.planner.key_group import key_groups_of
from heron.planner.physical_plan import CheckpointPlan
from heron.planner.regions import regions_of

__all__ = ["CheckpointRun", "checkpoint_run", "first_checkpoints"]


@dataclass(frozen=True, slots=True)
class CheckpointRun:
    """The run whose checkpoints are taken, and its settings.

    `interval_s` is the time between two orders; `regions` are those of the components (`heron.planner.regions`).
    """

    topology: str
    run: str
    key_groups: int
    interval_s: float
    timeout_s: float
    regions: Mapping[str, str]

    def all_regions(self) -> set[str]:
        """Every region of the topology."""
        return set(self.regions.values())

    def regions_of(self, components: Collection[str]) -> set[str]:
        """The regions of these components."""
        return {self.regions[each] for each in components}


def checkpoint_run(definition: TopologyDefinition, run: str, settings: EngineSettings) -> CheckpointRun:
    """The settings of a run."""
    interval_s = setting(definition.config, TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS)
    assert isinstance(interval_s, int | float)  # noqa: S101  # the key has a type and a default
    groups = key_groups_of(definition)
    timeout_s, regions = settings.checkpoint_timeout_s, regions_of(definition)
    return CheckpointRun(definition.name, run, groups, float(interval_s), timeout_s, regions)


def first_checkpoints(definition: TopologyDefinition) -> CheckpointPlan:
    """The value of the first plan; the numbers of a run that starts from a checkpoint continue those of the former run.

    Raises:
        CheckpointError: when the id of that checkpoint has a wrong form.
    """
    source = str(definition.config.get(TOPOLOGY_STATEFUL_START_FROM) or "")
    return CheckpointPlan(CheckpointId.parse(source).number if source else 0, source=source)
