"""The processes of a container, and the spec that each process starts with. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heron.errors import StateError, known
from heron.ipc.keys import ClientKind, KeyRing
from heron.kernel.role_spec import InstanceSpec, MetricsmgrSpec, ServiceProcessSpec, StmgrSpec, TManagerSpec
from heron.planner.packing_plan import InstancePlan, PackingPlan, standby_containers
from heron.spi.scheduler import ContainerSpec, ServiceSpec

__all__ = ["ContainerProcess", "RoleSpec", "container_processes", "instance_process", "output_file", "role_spec"]

RoleSpec = InstanceSpec | MetricsmgrSpec | ServiceProcessSpec | StmgrSpec | TManagerSpec


@dataclass(frozen=True, slots=True)
class ContainerProcess:
    """One process: its name in logs and reports, its role package, and its instance if the role is ``instance``.

    A process of the role ``service`` belongs to another distribution, and has its `service`.
    """

    name: str
    role: str
    instance: InstancePlan | None = None
    service: ServiceSpec | None = None

    @property
    def module(self) -> str:
        """The module that runs as its program."""
        return self.service.module if self.service else f"heron.{self.role}.main"

    @property
    def task_id(self) -> int:
        """The id of the task; 0 for the engine's own processes."""
        return self.instance.task_id if self.instance else 0


def container_processes(
    container_id: int, packing: PackingPlan, standbys: int = 0, services: Sequence[ServiceSpec] = ()
) -> tuple[ContainerProcess, ...]:
    """The processes of a container in the order of their start: processes that others wait for come first.

    The first `standbys` containers besides container 0 have a standby topology manager. Only container 0 has services.

    Raises:
        StateError: when the packing plan does not have the container.
    """
    tmanager, metricsmgr = ContainerProcess("tmanager", "tmanager"), ContainerProcess("metricsmgr", "metricsmgr")
    if container_id == 0:
        return tmanager, metricsmgr, *(ContainerProcess(each.name, "service", service=each) for each in services)
    try:
        plan = packing.container(container_id)
    except KeyError:
        ids = known(str(container.container_id) for container in packing.containers)
        msg = f"container {container_id} is not in packing plan {packing.id!r}; it has {ids}"
        raise StateError(msg) from None
    instances = (instance_process(instance) for instance in plan.instances)
    standby = (tmanager,) if container_id in standby_containers(packing, standbys) else ()
    return ContainerProcess("stmgr", "stmgr"), *instances, *standby, metricsmgr


def instance_process(instance: InstancePlan) -> ContainerProcess:
    """The process of an instance."""
    return ContainerProcess(f"{instance.component}-{instance.task_id}", "instance", instance)


def role_spec(
    process: ContainerProcess,
    container: ContainerSpec,
    keys: KeyRing,
    task_ids: tuple[int, ...],
    incarnation: int,
    package_dir: Path,
) -> RoleSpec:
    """The spec of a process, with only the keys that it needs; `task_ids` are all tasks of the container.

    Processes that end and start again when the first set of keys changes get this set only.
    """
    if process.instance is not None:
        return _instance_spec(process.instance, container, incarnation, package_dir)
    if process.service is not None:
        return _service_spec(process.service, container, keys, incarnation)
    if process.role == "stmgr":
        return StmgrSpec(
            topology=container.topology,
            topology_id=container.topology_id,
            container_id=container.container_id,
            incarnation=incarnation,
            run_dir=container.run_dir,
            log_dir=container.log_dir,
            task_ids=task_ids,
            keys=tuple(each.connecting_as(ClientKind.MEMBER) for each in keys.sets()),
            peer_keys=tuple(each.listening_to(ClientKind.MEMBER) for each in keys.sets()),
            settings=container.settings,
        )
    if process.role == "tmanager":
        return TManagerSpec(
            topology=container.topology,
            topology_id=container.topology_id,
            container_id=container.container_id,
            incarnation=incarnation,
            run_dir=container.run_dir,
            log_dir=container.log_dir,
            statemgr=container.statemgr,
            keys=keys.listening_to(*ClientKind),
            settings=container.settings,
            hooks=container.hooks,
            checkpoint=container.checkpoint,
        )
    return MetricsmgrSpec(
        topology=container.topology,
        container_id=container.container_id,
        incarnation=incarnation,
        run_dir=container.run_dir,
        log_dir=container.log_dir,
        keys=tuple(each.connecting_as(ClientKind.MEMBER) for each in keys.sets()),
        sinks=container.sinks,
        settings=container.settings,
    )


def _service_spec(
    service: ServiceSpec, container: ContainerSpec, keys: KeyRing, incarnation: int
) -> ServiceProcessSpec:
    return ServiceProcessSpec(
        topology=container.topology,
        topology_id=container.topology_id,
        container_id=container.container_id,
        incarnation=incarnation,
        run_dir=container.run_dir,
        log_dir=container.log_dir,
        keys=keys.connecting_as(ClientKind.CONTROL if service.control else ClientKind.READER),
        control=service.control,
        drivers=service.drivers,
        options=service.options,
        settings=container.settings,
    )


def _instance_spec(
    instance: InstancePlan, container: ContainerSpec, incarnation: int, package_dir: Path
) -> InstanceSpec:
    return InstanceSpec(
        topology=container.topology,
        topology_id=container.topology_id,
        container_id=container.container_id,
        task_id=instance.task_id,
        component=instance.component,
        component_index=instance.component_index,
        incarnation=incarnation,
        run_dir=container.run_dir,
        log_dir=container.log_dir,
        package_dir=str(package_dir),
        settings=container.settings,
        serializers=container.serializers,
        checkpoint=container.checkpoint,
        state_backends=container.state_backends,
    )


def output_file(process: ContainerProcess, container: ContainerSpec) -> Path:
    """The file for stdout and stderr: named by component and task for instances, else by process and container."""
    name = process.name if process.instance else f"{process.name}-{container.container_id}"
    return Path(container.log_dir) / f"{name}.out"
