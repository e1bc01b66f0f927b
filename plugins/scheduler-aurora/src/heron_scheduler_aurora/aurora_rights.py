"""Asks Aurora whether a user has the rights of the README, without changing anything.

Aurora looks at the rights of a request before anything else. So each request here is one that Aurora refuses in any
case: a job without instances, a job that does not exist, a job update in batches of none.
"""

from __future__ import annotations

from heron.errors import SchedulerError
from heron_scheduler_aurora.aurora_api import AuroraApi, AuroraRefusal
from heron_scheduler_aurora.aurora_words import ResponseCode
from heron_scheduler_kit.managed.rest_api import Json, fields

__all__ = ["check_rights"]


def check_rights(api: AuroraApi, config: Json, where: str) -> None:
    """Check the rights for the role of a task config, whose job must not exist.

    Raises:
        SchedulerError: when rights are missing; names all of them.
    """
    key = config["job"]
    probes: dict[str, Json] = {
        "createJob": {"description": {"key": key, "owner": config["owner"], "taskConfig": config, "instanceCount": 0}},
        "killTasks": {"job": key, "instances": [0], "message": "heron"},
        "addInstances": {"key": {"jobKey": key, "instanceId": 0}, "count": 1},
        "restartShards": {"job": key, "shardIds": [0]},
        "startJobUpdate": {
            "request": {"taskConfig": config, "instanceCount": 1, "settings": {"updateGroupSize": 0}},
            "message": "heron",
        },
    }
    missing = [name for name, arguments in probes.items() if not _may(api, name, arguments)]
    if missing:
        remedy = "grant the rights in the README of heron-scheduler-aurora, or correct scheduler.login"
        msg = f"{where}: this user may not {', '.join(missing)} for role {fields(key).get('role')!r}; {remedy}"
        raise SchedulerError(msg)


def _may(api: AuroraApi, method: str, arguments: Json) -> bool:
    try:
        api.call(method, **arguments)
    except AuroraRefusal as error:
        return error.code is not ResponseCode.AUTH_FAILED
    return True
