"""What operators read of the Mesos test server: the state of the master as a document."""

from __future__ import annotations

from typing import Any

from heron_testing_servers.mesos_parts.agent import TERMINAL, attributes
from heron_testing_servers.mesos_parts.framework import Framework, MasterTask
from heron_testing_servers.mesos_parts.master import Master
from heron_testing_servers.mesos_parts.offers import used

__all__ = ["state_of"]

Json = dict[str, Any]


def state_of(master: Master) -> Json:
    """Return the ``/state`` of a master, without its addresses."""
    agents = [
        {
            "id": each.id, "hostname": each.hostname, "port": each.port, "pid": f"slave(1)@{each.hostname}:{each.port}",
            "active": master.registered(each), "attributes": attributes(each.attributes),
            "resources": each.total.summary(), "used_resources": used(each, master.frameworks.values()).summary(),
        }
        for each in master.agents.values()
        if master.registered(each)
    ]  # fmt: skip
    return {
        "id": master.id,
        "hostname": "127.0.0.1",
        "activated_slaves": float(len(agents)),
        "slaves": agents,
        "frameworks": [_framework(each) for each in master.frameworks.values()],
        "completed_frameworks": [_framework(each) for each in master.removed.values()],
        "unregistered_frameworks": [],
    }


def _framework(each: Framework) -> Json:
    live = [task for task in each.tasks.values() if task.status["state"] not in TERMINAL]
    done = [task for task in each.tasks.values() if task.status["state"] in TERMINAL] + each.completed
    return {
        "id": each.id,
        "name": each.info["name"],
        "user": each.info["user"],
        "principal": each.principal,
        "roles": each.roles,
        "failover_timeout": float(each.info.get("failover_timeout", 0.0)),
        "active": each.subscription is not None,
        "connected": each.subscription is not None,
        "webui_url": each.info.get("webui_url", ""),
        "tasks": [_task(each, task) for task in live if not task.unreachable],
        "unreachable_tasks": [_task(each, task) for task in live if task.unreachable],
        "completed_tasks": [_task(each, task) for task in done],
    }


def _task(framework: Framework, task: MasterTask) -> Json:
    return {
        "id": task.id,
        "name": task.info["name"],
        "framework_id": framework.id,
        "executor_id": "",
        "slave_id": task.agent_id,
        "state": task.status["state"],
        "resources": task.resources.summary(),
        "statuses": [{"state": task.status["state"], "timestamp": task.status["timestamp"]}],
        "labels": task.info.get("labels", {}).get("labels", []),
    }
