"""The master of the Mesos test server: frameworks, offers, tasks and agents. It is a state without input or output.

As in Mesos, the master itself keeps little: the ids of agents, and of frameworks that are gone. A master that starts
learns the tasks from its agents, and the frameworks from tasks and subscriptions.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from heron.clock import monotonic_s, wall_s
from heron_testing_servers.mesos_parts.agent import Agent, AgentTask, update
from heron_testing_servers.mesos_parts.framework import Framework, MasterTask, Subscription
from heron_testing_servers.mesos_parts.offers import Offers, refuse
from heron_testing_servers.mesos_parts.registry import Registry
from heron_testing_servers.mesos_parts.resources import Resources

__all__ = ["Master"]

Json = dict[str, Any]

_COMPLETED = 100


class Master:
    """The leading master. The lock of the server is held in every call."""

    def __init__(self, agents: Iterable[Agent], folder: Path, times: Mapping[str, float], users: Json) -> None:
        """`times` has heartbeat_s, retry_s, unreachable_s and offer_timeout_s; `users` are the principals."""
        self.id = str(uuid.uuid4())
        self.agents = {each.name: each for each in agents}
        self.frameworks: dict[str, Framework] = {}
        self.removed: dict[str, Framework] = {}
        self.offers = Offers(self.id)
        self.times = times
        self._users = users
        self._registry = Registry(folder / "registry.json")
        self._registered: dict[str, Agent] = {}
        self._unreachable: set[str] = set()
        self._seen_at_s = {each.name: monotonic_s() for each in self.agents.values()}
        self._away: set[str] = set()  # agents that this master cannot reach now
        self._made = 0  # frameworks

    # Frameworks

    def subscribe(self, info: Json, subscription: Subscription) -> Framework | None:
        """Subscribe a framework, a new one or one that comes back; an error goes into the stream and ends it."""
        framework_id = info.get("id", {}).get("value")
        if not framework_id:
            framework_id = f"{self.id}-{self._made:04}"
            self._made += 1
        info = {**info, "id": {"value": framework_id}}
        found = Framework(framework_id, info)
        error, allowed = "", self._users.get(found.principal, {}).get("roles")
        if framework_id in self._registry.gone_frameworks:
            error = "Framework has been removed"
        elif allowed is not None and not set(found.roles) <= set(allowed):
            error = f"Not authorized to use roles '{{ {', '.join(found.roles)} }}'"
        if error:
            subscription.send({"type": "ERROR", "error": {"message": error}})
            subscription.finish()
            return None
        found = self.frameworks.setdefault(framework_id, found)
        found.info = info
        if found.subscription is not None:
            found.send({"type": "ERROR", "error": {"message": "Framework failed over"}})
            found.subscription.finish()
        self.offers.forget(found)
        found.suppressed.clear()
        found.filters.clear()
        found.subscription = subscription
        found.heartbeat_at_s = monotonic_s()
        subscribed = {"framework_id": {"value": framework_id}, "heartbeat_interval_seconds": self.times["heartbeat_s"]}
        found.send({"type": "SUBSCRIBED", "subscribed": subscribed})
        return found

    def disconnect(self, subscription: Subscription) -> None:
        """Note that a connection has ended."""
        for each in self.frameworks.values():
            if each.subscription is subscription:
                each.subscription, each.disconnected_at_s = None, monotonic_s()
                self.offers.forget(each)

    def teardown(self, framework: Framework) -> None:
        """End all tasks of a framework, and the framework."""
        self.offers.forget(framework)
        if framework.subscription is not None:
            framework.subscription.finish()
        del self.frameworks[framework.id]
        self.removed[framework.id] = framework
        self._registry.gone_frameworks.append(framework.id)
        self._registry.save()
        for agent in self._reached().values():
            agent.shutdown(framework.id)

    # Tasks

    def accept(self, framework: Framework, call: Json) -> None:
        """Launch tasks on offered resources; what is not used is refused."""
        offers, error = self.offers.take(framework, [each["value"] for each in call.get("offer_ids", ())])
        launches = (each["launch"]["task_infos"] for each in call.get("operations", ()) if each["type"] == "LAUNCH")
        tasks: list[Json] = [info for infos in launches for info in infos]
        if error or not offers:
            message = f"Task launched with invalid offers: {error or 'No offers specified'}"
            for info in tasks:
                _reject(framework, info, framework.state_for("TASK_DROPPED"), "REASON_INVALID_OFFERS", message)
            return
        left = sum((each.resources for each in offers), Resources())
        agent = self._registered[offers[0].agent_id]
        users = self._users.get(framework.principal, {}).get("users")
        for info in tasks:
            user = info.get("command", {}).get("user", framework.info["user"])
            if users is not None and user not in users:
                message = f"Not authorized to launch as user '{user}'"
                _reject(framework, info, "TASK_ERROR", "REASON_TASK_UNAUTHORIZED", message)
            elif message := _problem(framework, info, agent, left):
                _reject(framework, info, "TASK_ERROR", "REASON_TASK_INVALID", message)
            else:
                left -= self._learn(framework, AgentTask(framework.info, info, ""), agent).resources
                if agent.mode == "up":  # otherwise the message is lost
                    agent.launch(framework.info, info)
        refuse(offers[0], left, call.get("filters", {}))

    def kill(self, framework: Framework, call: Json) -> None:
        """Order the end of a task; an unknown one gets the answer of a reconciliation."""
        task = framework.tasks.get(call["task_id"]["value"])
        if task is None:
            self.reconcile(framework, [call])
        elif agent := self._reached().get(task.agent_id):
            agent.kill((framework.id, task.id), call.get("kill_policy"))

    def acknowledge(self, framework: Framework, call: Json) -> None:
        """Let an agent go on to the next update of a task."""
        agent = self._reached().get(call["agent_id"]["value"])
        if agent is not None:
            key = framework.id, call["task_id"]["value"]
            agent.acknowledge(key, call["uuid"])
            if key not in agent.tasks and key[1] in framework.tasks:
                framework.completed.append(framework.tasks.pop(key[1]))
                del framework.completed[:-_COMPLETED]

    def reconcile(self, framework: Framework, tasks: list[Json]) -> None:
        """Send the states of tasks; without any, of all known ones."""
        if not tasks:
            tasks = [{"task_id": {"value": each.id}} for each in framework.tasks.values() if not each.unreachable]
        waits = bool(set(self._registry.agents) - set(self._registered) - self._unreachable)
        for each in tasks:
            task_id, agent_id = each["task_id"]["value"], each.get("agent_id", {}).get("value")
            known = framework.tasks.get(task_id)
            if known is not None and not known.unreachable:
                state, message, agent_id = known.status["state"], "Latest task state", known.agent_id
            elif agent_id in self._registered:
                state, message = framework.state_for("TASK_GONE"), "Task is unknown to the agent"
            elif known is not None or agent_id in self._unreachable:
                state, message = framework.state_for("TASK_UNREACHABLE"), "Task is unreachable"
            elif agent_id in self._registry.agents or (not agent_id and waits):
                continue  # an agent may register again, with the task
            else:
                state, message = framework.state_for("TASK_UNKNOWN"), "Task is unknown"
            agent = {"value": agent_id} if agent_id else None
            message, reason = f"Reconciliation: {message}", "REASON_RECONCILIATION"
            framework.send_status(update(task_id, state, message, "MASTER", reason=reason, agent_id=agent))

    def forward(self) -> None:
        """Send the updates of agents that have not been sent, or not been acknowledged for some time."""
        now_s = monotonic_s()
        for agent in self._reached().values():
            for reported in list(agent.tasks.values()):
                framework = self.frameworks.get(reported.key[0])
                if framework is None or reported.ended_by == "shutdown":
                    continue
                task = framework.tasks.get(reported.key[1]) or self._learn(framework, reported, agent)
                if not reported.updates:
                    continue
                head = task.status = reported.updates[0]
                stream = framework.subscription.id if framework.subscription else ""
                if stream and (task.sent != (head["uuid"], stream) or now_s - task.sent_at_s >= self.times["retry_s"]):
                    task.sent, task.sent_at_s = (head["uuid"], stream), now_s
                    framework.send_status(head)

    # Agents and time

    def tick(self) -> None:
        """Do what is due."""
        now_s = monotonic_s()
        for agent in self.agents.values():
            self._look_at(agent, now_s)
        self.forward()
        for framework in list(self.frameworks.values()):
            if framework.subscription is None:
                if now_s - framework.disconnected_at_s >= float(framework.info.get("failover_timeout", 0.0)):
                    self.teardown(framework)
            elif now_s >= framework.heartbeat_at_s:
                framework.heartbeat_at_s = now_s + self.times["heartbeat_s"]
                framework.send({"type": "HEARTBEAT"})
        self.offers.rescind_old(self.times["offer_timeout_s"])
        self.offers.allocate(self._reached().values(), self.frameworks)

    def _look_at(self, agent: Agent, now_s: float) -> None:
        """Register an agent that is there, and give up one that has not been there for long."""
        agent.tick()
        if agent.mode == "up":
            self._seen_at_s[agent.name] = now_s
            new = agent.id not in self._registered or agent.name in self._away
            if new and agent.id not in self._registry.gone_agents:
                self._register(agent)
            self._away.discard(agent.name)
            return
        self._away.add(agent.name)
        if agent.id in self._registered and now_s - self._seen_at_s[agent.name] >= self.times["unreachable_s"]:
            self._lose(agent, "TASK_UNREACHABLE", "REASON_SLAVE_REMOVED", "is unreachable: health check timed out")

    def mark_gone(self, agent_id: str) -> bool:
        """Remove an agent for good, as an operator does; return whether it is known."""
        agent = next((each for each in self.agents.values() if each.id == agent_id), None)
        if agent is None:
            return False
        self._registry.gone_agents.append(agent_id)
        self._registry.save()
        reason = "REASON_SLAVE_REMOVED_BY_OPERATOR"
        self._lose(agent, "TASK_GONE_BY_OPERATOR", reason, "was marked gone by the operator")
        for framework_id in {key[0] for key in agent.tasks}:
            agent.shutdown(framework_id)
        return True

    def registered(self, agent: Agent) -> bool:
        """Return whether an agent is registered, also if the master cannot reach it for a moment."""
        return agent.id in self._registered

    def _reached(self) -> dict[str, Agent]:
        """Return the registered agents that get messages."""
        return {agent_id: each for agent_id, each in self._registered.items() if each.mode == "up"}

    def _register(self, agent: Agent) -> None:
        if not agent.id:
            agent.id = f"{self.id}-S{len(self._registry.agents)}"
            agent.save()
        if agent.id not in self._registry.agents:
            self._registry.agents.append(agent.id)
            self._registry.save()
        self._registered[agent.id] = agent
        came_back = agent.id in self._unreachable
        self._unreachable.discard(agent.id)
        for reported in list(agent.tasks.values()):
            framework_id = reported.key[0]
            if framework_id in self._registry.gone_frameworks:
                agent.shutdown(framework_id)
                continue
            new = Framework(framework_id, reported.framework, disconnected_at_s=monotonic_s())
            framework = self.frameworks.setdefault(framework_id, new)
            task = self._learn(framework, reported, agent)
            if came_back and framework.has("PARTITION_AWARE"):
                message, more = "Unreachable agent re-registered", {"agent_id": {"value": agent.id}}
                reason = "REASON_SLAVE_REREGISTERED"
                framework.send_status(update(task.id, reported.state, message, "MASTER", reason=reason, **more))
        for framework in self.frameworks.values():
            for task in [each for each in framework.tasks.values() if each.agent_id == agent.id]:
                if (framework.id, task.id) not in agent.tasks:  # its launch was lost
                    del framework.tasks[task.id]
                    state = framework.state_for("TASK_DROPPED")
                    _reject(framework, task.info, state, "REASON_RECONCILIATION", "Task is unknown to the agent")

    def _lose(self, agent: Agent, state: str, reason: str, why: str) -> None:
        self.offers.rescind(agent.id)
        self._registered.pop(agent.id, None)
        self._unreachable.discard(agent.id)
        more: Json = {"reason": reason, "agent_id": {"value": agent.id}}
        if state == "TASK_UNREACHABLE":
            self._unreachable.add(agent.id)
            more["unreachable_time"] = {"nanoseconds": int(wall_s() * 1e9)}
        for framework in self.frameworks.values():
            for task in [each for each in framework.tasks.values() if each.agent_id == agent.id]:
                message = f"Agent {agent.hostname} {why}"
                task.status = update(task.id, framework.state_for(state), message, "MASTER", **more)
                task.unreachable = True
                framework.send_status(task.status)
                if state != "TASK_UNREACHABLE":
                    framework.completed.append(framework.tasks.pop(task.id))
            framework.send({"type": "FAILURE", "failure": {"agent_id": {"value": agent.id}}})

    def _learn(self, framework: Framework, reported: AgentTask, agent: Agent) -> MasterTask:
        resources = Resources.parse(reported.info.get("resources", ()))
        staging = update(reported.key[1], reported.state, "", "MASTER", agent_id={"value": agent.id})
        status = reported.updates[0] if reported.updates else staging
        task = MasterTask(reported.info, agent.id, status, resources=resources)
        framework.tasks[task.id] = task
        return task


def _problem(framework: Framework, info: Json, agent: Agent, left: Resources) -> str:
    """Return why a task is invalid, or an empty text."""
    task_id, wanted = info["task_id"]["value"], Resources.parse(info.get("resources", ()))
    problems = {
        f"TaskID '{task_id}' contains invalid characters": not task_id or "/" in task_id or task_id in {".", ".."},
        f"Task has duplicate ID: {task_id}": task_id in framework.tasks,
        f"Task uses invalid agent {info['agent_id']['value']} while agent {agent.id} is expected": (
            info["agent_id"]["value"] != agent.id
        ),
        "Task should have at least one (but not both) of CommandInfo or ExecutorInfo present": (
            ("command" in info) == ("executor" in info)
        ),
        "this server runs tasks with CommandInfo alone, without executors and images": not info.keys().isdisjoint(
            {"executor", "container"}
        ),
        "Task uses no resources": not wanted,
        f"Task uses more resources {wanted} than available {left}": not left.contains(wanted),
    }
    return next((message for message, found in problems.items() if found), "")


def _reject(framework: Framework, info: Json, state: str, reason: str, message: str) -> None:
    more = {"reason": reason, "agent_id": info.get("agent_id")}
    framework.send_status(update(info["task_id"]["value"], state, message, "MASTER", **more))
