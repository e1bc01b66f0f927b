"""Observations of a task that take seconds: a profile, its memory, its tuples.

Each runs in a thread with its own client. It is a daemon, because the end of the tracker must not wait for it. A task
is observed once at a time, which the task itself decides, and a tracker observes few tasks at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from heron.errors import RefusedError
from heron_cli.client import Client, RemoteTopology, function_times, line_times, speedscope_file
from heron_service_tracker.answers.flow_answers import MemoryAnswer, ProfileAnswer, TuplesAnswer
from heron_service_tracker.calls.daemon_thread import in_daemon
from heron_service_tracker.request_errors import BusyError

__all__ = ["OpenCluster", "TaskObservers"]

_AT_A_TIME = 4
_FUNCTIONS = 100
_TIMEOUT_S = 15.0  # after the time of the observation: a task counts its objects within a second or two

OpenCluster = Callable[[str], Client]
"""Opens a read-only client of a cluster."""

T = TypeVar("T")


class TaskObservers:
    """Observes tasks. Each method raises what the client raises; `tuples_allowed` is the choice of the operator.

    Raises:
        BusyError: when the task is being observed already, or too many tasks are.
    """

    def __init__(self, open_cluster: OpenCluster, *, tuples_allowed: bool = False) -> None:
        self._open_cluster = open_cluster
        self.tuples_allowed = tuples_allowed
        self._under_way = 0

    async def profile(self, cluster: str, topology: str, task_id: int, seconds: float) -> ProfileAnswer:
        """Return where a task spends its time."""
        found = await self._observe(cluster, topology, lambda it: it.profile(task_id, seconds=seconds))
        lines, functions = line_times(found)[:_FUNCTIONS], function_times(found)[:_FUNCTIONS]
        return ProfileAnswer(found, lines, functions, msgspec.json.decode(speedscope_file(found)))

    async def memory(self, cluster: str, topology: str, task_id: int, seconds: float) -> MemoryAnswer:
        """Return what the memory of a task holds, and what grows in it."""
        return MemoryAnswer(await self._observe(cluster, topology, lambda it: it.memory(task_id, seconds=seconds)))

    async def tuples(self, cluster: str, topology: str, task_id: int, tuples: int, seconds: float) -> TuplesAnswer:
        """Return the next tuples of a task."""
        found = await self._observe(cluster, topology, lambda it: it.tuples(task_id, tuples=tuples, seconds=seconds))
        return TuplesAnswer(found)

    async def _observe(self, cluster: str, topology: str, ask: Callable[[RemoteTopology], T]) -> T:
        if self._under_way >= _AT_A_TIME:
            msg = f"{self._under_way} tasks are being observed by this tracker, which is its limit; ask again later"
            raise BusyError(msg)
        self._under_way += 1
        try:
            return await in_daemon(lambda: self._ask(cluster, topology, ask), "observer")
        except RefusedError as error:
            raise BusyError(str(error)) from error
        finally:
            self._under_way -= 1

    def _ask(self, cluster: str, topology: str, ask: Callable[[RemoteTopology], T]) -> T:
        with self._open_cluster(cluster) as client, client.topology(topology, timeout_s=_TIMEOUT_S) as remote:
            return ask(remote)
