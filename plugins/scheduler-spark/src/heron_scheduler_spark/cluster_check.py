"""Whether a cluster could ever hold a job, asked of it when the application is there."""

from __future__ import annotations

from collections.abc import Sequence

from heron_scheduler_spark.application import Application
from heron_scheduler_spark.cluster_size import check_largest, check_size
from heron_scheduler_spark.container_request import ContainerRequest
from heron_scheduler_spark.master import Cluster, Master
from heron_scheduler_spark.reach import check_network, is_here, listens

__all__ = ["check_cluster"]

_ANSWER_S = 2.0


def check_cluster(
    application: Application, master: Master, requests: Sequence[ContainerRequest], listening: str
) -> None:
    """`requests` are of executors, `listening` is where containers listen; what cannot be told is not checked.

    Raises:
        SchedulerError: when it could not; has the numbers.
    """
    if master.cluster is Cluster.YARN:
        # Where the managers are elsewhere, so are nodes; YARN is not asked for them.
        check_network(listening, [host for host, _ in master.addresses if not is_here(host)])
        if (most := application.largest_container()) is not None:
            check_largest(requests, most)
    for address in master.addresses if master.cluster is Cluster.STANDALONE else ():
        # Of several masters one leads; one that is away would be waited for long.
        if listens(address, _ANSWER_S) and (workers := application.workers(*address)) is not None:
            check_network(listening, [each.host for each in workers])
            check_size(requests, workers)
            return
