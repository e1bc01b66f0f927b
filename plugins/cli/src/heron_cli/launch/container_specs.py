"""The specs of containers that a scheduler starts, for a submission and for an update."""

from __future__ import annotations

from collections.abc import Mapping

from heron.api.api_constants import TOPOLOGY_RELIABILITY_MODE
from heron.api.config import setting, takes_checkpoints
from heron.api.definition import TopologyDefinition
from heron.errors import ConfigError
from heron.kernel.settings import EngineSettings
from heron.planner.packing_plan import Resource
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec
from heron.state_nodes.execution_state import ExecutionState
from heron_cli.profiles import Profile

__all__ = ["checkpoint_store", "container_specs"]


def checkpoint_store(profile: Profile, topology: TopologyDefinition) -> DriverRef | None:
    """Return the checkpoint store for a topology; None if it takes no checkpoints.

    Raises:
        ConfigError: when the topology takes checkpoints, and the profile has no checkpoint store.
    """
    if not takes_checkpoints(topology.config):
        return None
    if profile.checkpoint is None:
        mode = setting(topology.config, TOPOLOGY_RELIABILITY_MODE)
        msg = (
            f"topology {topology.name!r}: {TOPOLOGY_RELIABILITY_MODE} {mode} with checkpoints needs a store, and "
            f"profile {profile.name!r} has none; add `checkpoint: {{driver: NAME}}` to {profile.source}"
        )
        raise ConfigError(msg)
    return profile.checkpoint


def container_specs(
    profile: Profile,
    run: ExecutionState,
    required: Mapping[int, Resource],
    settings: EngineSettings,
    hooks: tuple[str, ...],
    named: tuple[DriverRef, ...],
    checkpoint: DriverRef | None,
) -> tuple[ContainerSpec, ...]:
    """Return the specs of these containers for their first start; `required` are their resources by container id.

    `named` are the drivers that components name: serializers and state backends.
    """
    return tuple(
        ContainerSpec(
            topology=run.topology,
            topology_id=run.topology_id,
            container_id=container_id,
            attempt=1,
            run_dir=run.run_dir,
            log_dir=run.log_dir,
            package_uri=run.package_uri,
            statemgr=profile.statemgr,
            uploader=profile.uploader,
            sinks=profile.sinks(run.log_dir),
            settings=settings.to_keys(),
            hooks=hooks,
            serializers=tuple(each for each in named if each.family == "serializer"),
            required=resource,
            checkpoint=checkpoint,
            state_backends=tuple(each for each in named if each.family == "state"),
        )
        for container_id, resource in required.items()
    )
