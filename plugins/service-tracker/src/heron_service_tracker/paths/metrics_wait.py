"""The wait of a request for metrics that nobody has looked at lately.

Watches read the metrics of a topology only while somebody looks at them. The first request wakes the watch, and waits
for what it reads, which takes some milliseconds; the requests after it find the newest values.
"""

from __future__ import annotations

import asyncio
import contextlib

from heron_service_tracker.observed.observed import ObservedTopology
from heron_service_tracker.watches.observations import Observations, Reading

__all__ = ["wait_for_metrics"]

_WAIT_S = 3.0  # as a watch waits for an answer; then the request shows what there is, with its age


async def wait_for_metrics(observations: Observations, cluster: str, topology: str) -> None:
    """Look at the metrics of a topology, and return when they were read, failed to be, or did not come in 3 s.

    Raises:
        UnknownPlaceError: when the cluster or the topology does not exist, or goes away meanwhile.
    """
    changed, loop = asyncio.Event(), asyncio.get_running_loop()

    def listener(_topology: ObservedTopology) -> None:
        loop.call_soon_threadsafe(changed.set)

    observations.listen(cluster, topology, listener)
    try:
        observations.looked_at(cluster, topology, Reading.ALL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_S):
                while observations.metrics_awaited(cluster, topology):
                    await changed.wait()
                    changed.clear()
    finally:
        observations.forget(cluster, topology, listener)
