"""A job as a cluster stores it: names, and a request for each container. Pure, and without secrets."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from heron.api.api_constants import TOPOLOGY_TMANAGER_STANDBYS
from heron.errors import SchedulerError, known
from heron.planner.packing_plan import NO_RESOURCE
from heron.spi.scheduler import ContainerSpec, Job
from heron.spi.typed_values import decode_json
from heron_scheduler_kit.managed.managed_options import ManagedOptions

__all__ = ["ContainerRequest", "ManagedJob", "PlaceChoice", "decode_job", "encode_job"]

_MB = 1024 * 1024

PlaceChoice = Callable[["ManagedJob", int], str]
"""Returns the place for a new container of a job; `Cluster.place`."""


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """What a container asks of the cluster: cores, MiB of memory and of disk, the executor's own share included.

    `place` is the cluster's name for what keeps the container, and never changes. `disk_mb` is 0 without a request.
    """

    container_id: int
    place: str
    cpu: float
    memory_mb: int
    disk_mb: int = 0


@dataclass(frozen=True, slots=True)
class ManagedJob:
    """One job: its run, labels for people, and the requests of its containers, by container id.

    The first `standbys` containers besides container 0 have a standby topology manager.
    """

    topology: str
    topology_id: str
    owner: str = ""
    role: str = ""
    env: str = ""
    containers: tuple[ContainerRequest, ...] = ()
    standbys: int = 0

    @classmethod
    def of(cls, job: Job, options: ManagedOptions, choose: PlaceChoice) -> ManagedJob:
        """Return the job of a submission.

        Raises:
            SchedulerError: when it has no container, or a container twice.
        """
        if not job.containers:
            msg = f"topology {job.topology!r} has no containers; give at least one"
            raise SchedulerError(msg)
        standbys = int(str(job.containers[0].settings.get(TOPOLOGY_TMANAGER_STANDBYS, 0)))
        empty = cls(job.topology, job.topology_id, job.owner, job.role, job.env, standbys=standbys)
        return empty.with_added(job.containers, options, choose)

    @property
    def container_ids(self) -> tuple[int, ...]:
        """The ids of its containers."""
        return tuple(each.container_id for each in self.containers)

    @property
    def places(self) -> frozenset[str]:
        """The places of its containers."""
        return frozenset(each.place for each in self.containers)

    @property
    def standby_places(self) -> tuple[str, ...]:
        """The places of the standby topology managers, which should be on other machines than container 0."""
        return tuple(each.place for each in self.containers if each.container_id)[: self.standbys]

    @property
    def managers(self) -> tuple[str, ...]:
        """The places that must not be lost together: those with a topology manager; empty without standbys."""
        return (self.request(0).place, *self.standby_places) if self.standbys else ()

    def request(self, container_id: int) -> ContainerRequest:
        """Return the request of a container. Raises SchedulerError when the job does not have it."""
        self.check_has([container_id])
        return next(each for each in self.containers if each.container_id == container_id)

    def check_has(self, container_ids: Iterable[int]) -> None:
        """Raise SchedulerError when one of these containers is not in the job."""
        for each in container_ids:
            if each not in self.container_ids:
                ids = known(map(str, self.container_ids))
                msg = f"topology {self.topology!r}: container {each} is unknown; this job has {ids}"
                raise SchedulerError(msg)

    def with_added(self, specs: Sequence[ContainerSpec], options: ManagedOptions, choose: PlaceChoice) -> ManagedJob:
        """Return the job with further containers. Raises SchedulerError when it has one of them already."""
        grown = self
        for spec in specs:
            if spec.container_id in grown.container_ids:
                msg = (
                    f"topology {self.topology!r}: container {spec.container_id} exists already; remove it first, or "
                    "use another id"
                )
                raise SchedulerError(msg)
            request = _request(spec, options, choose(grown, spec.container_id))
            both = (*grown.containers, request)
            grown = replace(grown, containers=tuple(sorted(both, key=lambda each: each.container_id)))
        return grown

    def without(self, container_ids: Collection[int]) -> ManagedJob:
        """Return the job without these containers."""
        kept = tuple(each for each in self.containers if each.container_id not in container_ids)
        return replace(self, containers=kept)


def encode_job(job: ManagedJob) -> str:
    """Return the job as one line of JSON."""
    return msgspec.json.encode(job).decode()


def decode_job(text: str, stored_in: str, topology: str) -> ManagedJob:
    """Return the job of `encode_job`; `stored_in` is for messages.

    Raises:
        SchedulerError: when the text is something else, or the job of another topology, because names are shortened.
    """
    try:
        job = decode_json(text.encode(), ManagedJob)
    except msgspec.MsgspecError as error:
        msg = f"{stored_in}: is not a job of Heron ({error}); it was changed by hand, remove it with the cluster's tool"
        raise SchedulerError(msg) from error
    if job.topology != topology:
        msg = f"{stored_in} belongs to topology {job.topology!r}; give {topology!r} another name"
        raise SchedulerError(msg)
    return job


def _request(spec: ContainerSpec, options: ManagedOptions, place: str) -> ContainerRequest:
    needs = spec.required
    if needs == NO_RESOURCE:
        cpu, memory_mb = options.manager_cpu, options.manager_memory_mb
    else:
        cpu, memory_mb = needs.cpu, math.ceil(needs.ram_bytes / _MB)
    return ContainerRequest(
        spec.container_id,
        place,
        round(cpu + options.executor_cpu, 3),
        memory_mb + options.executor_memory_mb,
        math.ceil(needs.disk_bytes / _MB),
    )
