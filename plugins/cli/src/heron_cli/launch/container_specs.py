"""The specs of containers that a scheduler starts, for a submission and for an update."""

from __future__ import annotations

from collections.abc import Mapping

from heron.kernel.settings import EngineSettings
from heron.planner.packing_plan import Resource
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec
from heron.state_nodes.execution_state import ExecutionState
from heron_cli.profiles import Profile

__all__ = ["container_specs"]


def container_specs(
    profile: Profile,
    run: ExecutionState,
    required: Mapping[int, Resource],
    settings: EngineSettings,
    hooks: tuple[str, ...],
    serializers: tuple[DriverRef, ...],
) -> tuple[ContainerSpec, ...]:
    """Return the specs of these containers for their first start; `required` are their resources by container id."""
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
            serializers=serializers,
            required=resource,
        )
        for container_id, resource in required.items()
    )
