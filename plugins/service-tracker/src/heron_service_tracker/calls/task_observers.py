"""Observations that take seconds: a profile of a task or of a component, the memory of a task, its tuples.

Each task is asked by a thread with its own client. It is a daemon, because the end of the tracker must not wait for it.
A task is observed once at a time, which the task itself decides, and a tracker makes few observations at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from heron.errors import HeronError, RefusedError
from heron_cli.client import (
    Client,
    RemoteTopology,
    TaskProfile,
    function_times,
    line_times,
    speedscope_file,
    summed_profile,
)
from heron_service_tracker.answers.flow_answers import MemoryAnswer, ProfileAnswer, TuplesAnswer
from heron_service_tracker.calls.daemon_thread import in_daemon
from heron_service_tracker.request_errors import BusyError

__all__ = ["OpenCluster", "TaskObservers"]

_AT_A_TIME = 4
_MOST_TASKS = 64  # of a component: four times as long as one task, and 20 MB of answers at most
_TOGETHER = 16  # of them at a time: each is a thread and a connection
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
        return _profile_answer(await self._observe(cluster, topology, lambda it: it.profile(task_id, seconds=seconds)))

    async def component_profile(
        self, cluster: str, topology: str, task_ids: Sequence[int], seconds: float
    ) -> ProfileAnswer:
        """Return where the tasks of a component spend their time, summed up.

        At most 16 tasks are sampled at a time, so more of them take a multiple of `seconds`. Of more than 64 tasks, 64
        are sampled, which are spread evenly. A task that does not answer is missing; if none does, the first error is
        raised.
        """
        chosen = _spread(task_ids, _MOST_TASKS)
        room = asyncio.Semaphore(_TOGETHER)

        async def one(task_id: int) -> TaskProfile | HeronError:
            async with room:
                try:
                    return await self._in_thread(cluster, topology, lambda it: it.profile(task_id, seconds=seconds))
                except HeronError as error:
                    return error

        with self._place():
            found = dict(zip(chosen, await asyncio.gather(*map(one, chosen)), strict=True))
        profiles = {task_id: each for task_id, each in found.items() if isinstance(each, TaskProfile)}
        errors = {task_id: each for task_id, each in found.items() if isinstance(each, HeronError)}
        if not profiles:
            raise next(iter(errors.values()))
        missing = [f"task {task_id}: {error}" for task_id, error in errors.items()]
        if left := len(task_ids) - len(chosen):
            missing.append(f"{left} more tasks: at most {_MOST_TASKS} of a component are sampled")
        answer = _profile_answer(summed_profile(list(profiles.values())))
        return msgspec.structs.replace(answer, task_ids=tuple(profiles), missing=tuple(missing))

    async def memory(self, cluster: str, topology: str, task_id: int, seconds: float) -> MemoryAnswer:
        """Return what the memory of a task holds, and what grows in it."""
        return MemoryAnswer(await self._observe(cluster, topology, lambda it: it.memory(task_id, seconds=seconds)))

    async def tuples(self, cluster: str, topology: str, task_id: int, tuples: int, seconds: float) -> TuplesAnswer:
        """Return the next tuples of a task."""
        found = await self._observe(cluster, topology, lambda it: it.tuples(task_id, tuples=tuples, seconds=seconds))
        return TuplesAnswer(found)

    async def _observe(self, cluster: str, topology: str, ask: Callable[[RemoteTopology], T]) -> T:
        with self._place():
            return await self._in_thread(cluster, topology, ask)

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self._under_way >= _AT_A_TIME:
            msg = f"{self._under_way} observations are under way, which is the limit of a tracker; ask again later"
            raise BusyError(msg)
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    async def _in_thread(self, cluster: str, topology: str, ask: Callable[[RemoteTopology], T]) -> T:
        try:
            return await in_daemon(lambda: self._ask(cluster, topology, ask), "observer")
        except RefusedError as error:
            raise BusyError(str(error)) from error

    def _ask(self, cluster: str, topology: str, ask: Callable[[RemoteTopology], T]) -> T:
        with self._open_cluster(cluster) as client, client.topology(topology, timeout_s=_TIMEOUT_S) as remote:
            return ask(remote)


def _profile_answer(found: TaskProfile) -> ProfileAnswer:
    lines, functions = line_times(found)[:_FUNCTIONS], function_times(found)[:_FUNCTIONS]
    return ProfileAnswer(found, lines, functions, msgspec.json.decode(speedscope_file(found)))


def _spread(task_ids: Sequence[int], most: int) -> list[int]:
    """The tasks, or `most` of them at equal distances."""
    count = min(len(task_ids), most)
    return [task_ids[number * len(task_ids) // count] for number in range(count)]
