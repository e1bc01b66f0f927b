"""The scheduler driver ``kubernetes``: runs the containers of a topology as Pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, Self

from heron.spi.options import decode_options
from heron.spi.scheduler import Job, PlannedRun
from heron_scheduler_kit.managed.container_change import launch_files
from heron_scheduler_kit.managed.managed_job import ManagedJob
from heron_scheduler_kit.managed.managed_scheduler import ManagedScheduler
from heron_scheduler_kubernetes.kubeconfig import find_access
from heron_scheduler_kubernetes.kubernetes_api import KubernetesApi
from heron_scheduler_kubernetes.kubernetes_cluster import KubernetesCluster
from heron_scheduler_kubernetes.objects import launch_secret, place_of, service, stateful_sets
from heron_scheduler_kubernetes.options import KubernetesOptions

__all__ = ["KubernetesScheduler"]


class KubernetesScheduler(ManagedScheduler):
    """Runs each job as two StatefulSets, which Kubernetes keeps alive."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"avoid", "manifests", "output", "restart", "server", "shared", "update"}
    )
    options_type: ClassVar[type] = KubernetesOptions

    def __init__(self, options: KubernetesOptions) -> None:
        api = KubernetesApi(partial(find_access, options.kubeconfig, options.context), options.namespace)
        super().__init__(options, KubernetesCluster(api, options))
        self._kubernetes = options

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(decode_options(options, KubernetesOptions, "scheduler"))

    def manifests(self, job: Job, planned: PlannedRun) -> Sequence[Mapping[str, object]]:
        """Return what `kubectl create` takes."""
        managed = ManagedJob.of(job, self._options, place_of)
        return (
            service(managed, self._kubernetes),
            launch_secret(managed, self._kubernetes, launch_files(managed, job.containers, self._options, planned)),
            *stateful_sets(managed, self._kubernetes),
        )
