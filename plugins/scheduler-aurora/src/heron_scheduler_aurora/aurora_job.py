"""What one job of Aurora has, and changes of it that wait for its job updates."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Set

from heron.clock import monotonic_s
from heron.errors import SchedulerError
from heron_scheduler_aurora.aurora_api import AuroraApi, AuroraRefusal
from heron_scheduler_aurora.aurora_words import ResponseCode
from heron_scheduler_aurora.job_config import added_instances
from heron_scheduler_aurora.task_states import active, is_being_killed, is_updating, update_name
from heron_scheduler_kit.managed.rest_api import Json, items

__all__ = ["AuroraJob"]

_LOCK_S = 4.0  # of the 5 s that a call may take
_POLL_S = 0.2
_UPDATING = "active update already exists"  # `startJobUpdate` says it as INVALID_REQUEST
_UPDATES = 10  # the newest ones of a job


class AuroraJob:
    """One job, by its key; `path` is its name in Aurora's own tools."""

    def __init__(self, api: AuroraApi, key: Json, path: str) -> None:
        self._api = api
        self._key = key
        self._path = path

    def tasks(self) -> list[Json]:
        """Return its tasks, also those that are over and that Aurora still has, without the data of the executor."""
        found = self._api.call("getTasksWithoutConfigs", query={"jobKeys": [self._key]})
        return items(found.get("tasks"))

    def present(self, wanted: Iterable[int]) -> dict[int, Json]:
        """Return its tasks that are not over, by instance, when none of the wanted instances is being killed.

        Raises:
            SchedulerError: when one is still being killed after `_LOCK_S`; names it.
        """
        numbers = set(wanted)
        deadline_s, pause = monotonic_s() + _LOCK_S, threading.Event()
        while True:
            found = active(self.tasks())
            ending = sorted(each for each in numbers & found.keys() if is_being_killed(found[each]))
            if not ending:
                return found
            if monotonic_s() > deadline_s:
                msg = f"{self._path}: aurora still kills the instances {', '.join(map(str, ending))}; try again later"
                raise SchedulerError(msg)
            pause.wait(_POLL_S)

    def task(self, instance: int) -> list[Json]:
        """Return the tasks of an instance, whole."""
        query = {"jobKeys": [self._key], "instanceIds": [instance]}
        return items(self._api.call("getTasksStatus", query=query).get("tasks"))

    def pending(self) -> list[Json]:
        """Return Aurora's reasons why tasks have no host."""
        return items(self._api.call("getPendingReason", query={"jobKeys": [self._key]}).get("reasons"))

    def updates(self) -> list[Json]:
        """Return its newest job updates."""
        query = {"jobKey": self._key, "limit": _UPDATES}
        return items(self._api.call("getJobUpdateSummaries", jobUpdateQuery=query).get("updateSummaries"))

    def copy(self, instance: int, count: int) -> None:
        """Add copies of an instance, which get the numbers behind the highest one."""
        self._change("addInstances", {"key": {"jobKey": self._key, "instanceId": instance}, "count": count})

    def update(self, request: Json) -> None:
        """Start a job update."""
        self._change("startJobUpdate", {"request": request, "message": "heron update"})

    def restart(self, instance: int) -> None:
        """End the processes of an instance, which Aurora starts again."""
        self._change("restartShards", {"job": self._key, "shardIds": [instance]})

    def kill(self, instances: Set[int]) -> None:
        """Kill instances. A job update that only adds some of them is aborted."""
        self._change("killTasks", {"job": self._key, "message": "heron", "instances": sorted(instances)}, instances)

    def kill_all(self) -> None:
        """Kill all instances. Every job update is aborted."""
        self._change("killTasks", {"job": self._key, "message": "heron"}, None)

    def _change(self, method: str, arguments: Json, ended: Set[int] | None = frozenset()) -> None:
        """Call a method that ends these instances, or all (None), when no job update is at work.

        An update that only adds instances which the call ends is aborted. Every other one is waited for.

        Raises:
            SchedulerError: when an update is at work after `_LOCK_S`; names it.
        """
        deadline_s, pause = monotonic_s() + _LOCK_S, threading.Event()
        while True:
            try:
                self._api.call(method, **arguments)
                return
            except AuroraRefusal as error:
                if error.code is not ResponseCode.JOB_UPDATING_ERROR and _UPDATING not in str(error):
                    raise
                updates = [each for each in self.updates() if is_updating(each)]
                if monotonic_s() > deadline_s:
                    names = ", ".join(map(update_name, updates)) or "a job update"
                    remedy = f"try again later, or end it with `aurora update abort {self._path}`"
                    msg = f"{names}: still at work after {_LOCK_S:g} s; {remedy}: {error}"
                    raise SchedulerError(msg) from error
            for each in updates:
                added = added_instances(each)
                if ended is None or (added and added <= ended):
                    self._api.call("abortJobUpdate", key=each["key"], message="heron")
            pause.wait(_POLL_S)
