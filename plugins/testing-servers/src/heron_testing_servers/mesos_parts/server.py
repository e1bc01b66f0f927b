"""A master of Mesos and its agents in one process, a server of `ContractServer`.

It is written from the published contract of the scheduler HTTP API v1 in JSON. Several masters may share a folder: the
one that holds the lock file leads, with all agents; the others answer 307 and take over when it ends.
"""

from __future__ import annotations

import base64
import fcntl
import json
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heron_testing_servers.container_processes import Container, ContainerEnd, ContainerProcesses
from heron_testing_servers.contract_server import CONTAINERS
from heron_testing_servers.http_service import Answer, HttpService, Request, RequestFaults
from heron_testing_servers.mesos_parts.agent import Agent
from heron_testing_servers.mesos_parts.calls import RefusedCall, answer_call
from heron_testing_servers.mesos_parts.framework import Subscription
from heron_testing_servers.mesos_parts.master import Master
from heron_testing_servers.mesos_parts.state import state_of

__all__ = ["MesosServer"]

Json = dict[str, Any]

_TICK_S = 0.05
_VERSION = "1.11.0"


class MesosServer:
    """The HTTP side: who asks, whether the request is well-formed, and what the state looks like."""

    def __init__(self, folder: Path, port: int, owner: int, options: Json) -> None:
        self._folder = folder
        self._port = port
        self._owner = owner
        self._options = options
        self._users: Json = options["users"]
        self._lock = threading.Condition(threading.RLock())
        self._master: Master | None = None
        self._faults = RequestFaults(folder / "faults.json")

    def run(self) -> None:
        """Serve until the process ends."""
        controls = {CONTAINERS: self._containers, "agents": self._change_agent, "fail": self._fail_task}
        service = HttpService(self._port, self._respond, self._faults, controls, self._operation)
        threading.Thread(target=service.run, daemon=True).start()
        lock = (self._folder / "leader.lock").open("a+")
        while not self._lead(lock):
            with self._lock:
                self._lock.wait(_TICK_S)
        with self._lock:
            while True:
                assert self._master is not None
                self._master.tick()
                self._lock.wait(_TICK_S)

    def _lead(self, lock: Any) -> bool:  # noqa: ANN401 - an open file
        """Become the leader if there is none."""
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        with self._lock:
            place = self._folder / CONTAINERS
            containers = ContainerProcesses(place, self._owner, self._ended, self._started)
            containers.restore()
            agents = [Agent(each, self._folder, containers, self._lock.notify_all) for each in self._options["agents"]]
            for each in agents:
                service = HttpService(each.port, self._agent_side(each), self._faults, {}, host=each.hostname)
                threading.Thread(target=service.run, daemon=True).start()
            self._master = Master(agents, self._folder, self._options["times"], self._users)
            self._master.tick()
            (self._folder / "leader").write_text(str(self._port), encoding="ascii")
        return True

    def _started(self, container: Container) -> None:
        with self._lock:
            for agent in self._master.agents.values() if self._master else ():
                agent.started(container)

    def _ended(self, container: Container, end: ContainerEnd) -> None:
        with self._lock:
            for agent in self._master.agents.values() if self._master else ():
                agent.ended(container, end)

    # Requests

    def _operation(self, request: Request) -> str:
        """Name a request for faults: that of a scheduler by its type, for example ``ACCEPT``."""
        if request.path == "/api/v1/scheduler":
            try:
                return str(request.json()["type"])
            except (ValueError, LookupError, TypeError):
                pass
        return f"{request.method} {request.path}"

    def _respond(self, request: Request) -> Answer:
        path = request.path.removeprefix("/master")
        if path == "/health":
            return Answer()
        with self._lock:
            if self._master is None or path == "/redirect":
                return self._redirect("" if path == "/redirect" else request.path)
            try:
                return self._answer(self._master, request, path)
            except RefusedCall as refused:
                return refused.answer
            except (LookupError, TypeError, ValueError) as error:
                traceback.print_exc()
                return Answer(400, f"Failed to convert JSON into Call protobuf: {error!r}".encode())
            finally:
                self._lock.notify_all()

    def _answer(self, master: Master, request: Request, path: str) -> Answer:
        user = self._authenticated(request, "scheduler" if path == "/api/v1/scheduler" else "readonly")
        if path == "/api/v1/scheduler":
            return answer_call(master, request, user, self._disconnected)
        if request.method == "POST":
            return self._operate(master, request, path, user)
        address = f"master@127.0.0.1:{self._port}"
        state = {**state_of(master), "leader": address, "pid": address, "version": _VERSION}
        if path in {"/state", "/state.json"}:
            return Answer.json(state)
        if path in {"/slaves", "/frameworks"}:
            return Answer.json({path[1:]: state[path[1:]]})
        if path == "/tasks":
            offset, limit = int(request.query.get("offset", 0)), int(request.query.get("limit", 100))
            tasks = [task for each in state["frameworks"] for task in each["tasks"] + each["completed_tasks"]]
            return Answer.json({"tasks": tasks[offset : offset + limit]})
        return Answer(404)

    def _redirect(self, path: str) -> Answer:
        try:
            leader = (self._folder / "leader").read_text(encoding="ascii")
        except FileNotFoundError:
            return Answer(503, b"No leader elected")
        return Answer(307, headers={"location": f"//127.0.0.1:{leader}{path}"})

    def _authenticated(self, request: Request, realm: str) -> str | None:
        """Return the principal of a request, or None without users, when everyone may do everything.

        Raises:
            RefusedCall: without valid credentials.
        """
        if not self._users:
            return None
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        try:
            name, _, secret = base64.b64decode(text, validate=True).decode().partition(":")
        except ValueError:
            name, secret = "", ""
        if kind != "Basic" or self._users.get(name, {}).get("secret") != secret:
            raise RefusedCall(401, "Incorrect credentials", www_authenticate=f'Basic realm="mesos-master-{realm}"')
        return name

    def _demand(self, user: str | None, right: str) -> None:
        """Raise RefusedCall if a user has not got a right; a right that is not limited is given."""
        if user is not None and not self._users[user].get(right, True):
            raise RefusedCall(403)

    def _disconnected(self, subscription: Subscription) -> None:
        with self._lock:
            if self._master is not None:
                self._master.disconnect(subscription)

    def _operate(self, master: Master, request: Request, path: str, user: str | None) -> Answer:
        """Carry out what operators may order: a teardown, or that an agent is gone."""
        if path == "/teardown":
            self._demand(user, "teardown")
            framework = master.frameworks.get(request.body.decode().partition("frameworkId=")[2])
            if framework is None:
                raise RefusedCall(400, "No framework found with specified ID")
            master.teardown(framework)
            return Answer()
        call = request.json() if path == "/api/v1" else {}
        if call.get("type") != "MARK_AGENT_GONE":
            raise RefusedCall(501, "this server knows the operator call MARK_AGENT_GONE alone")
        self._demand(user, "mark_gone")
        return Answer(200 if master.mark_gone(call["mark_agent_gone"]["agent_id"]["value"]) else 404)

    def _agent_side(self, agent: Agent) -> Callable[[Request], Answer]:
        def respond(request: Request) -> Answer:
            path = request.path.removeprefix("/slave(1)")
            try:
                user = self._authenticated(request, "readonly")
                if path.startswith("/files/"):
                    self._demand(user, "read_files")
            except RefusedCall as refused:
                return refused.answer
            with self._lock:
                if agent.mode == "down":
                    return Answer(503, b"the machine of this agent is lost")
                if path.startswith("/files/"):
                    return agent.read_file(request, path.removeprefix("/files/").removesuffix(".json"))
                return Answer.json(agent.state()) if path in {"/state", "/state.json"} else Answer(404)

        return respond

    # Tests

    def _containers(self, _: Request) -> Json:
        """Return the process ids of the tasks that run, by the ids of the tasks."""
        with self._lock:
            agents = self._master.agents.values() if self._master else ()
            found = {each.key[1]: agent.pid(each) for agent in agents for each in agent.tasks.values()}
            return {task_id: pid for task_id, pid in found.items() if pid}

    def _change_agent(self, request: Request) -> Json:
        with self._lock:
            master = self._master
            if master is None:
                msg = "this master does not lead"
                raise LookupError(msg)
            if request.method == "POST":
                master.agents[request.json()["name"]].change_mode(request.json()["mode"])
            return {
                each.name: {
                    "id": each.id,
                    "mode": each.mode,
                    "registered": master.registered(each),
                    "url": f"http://{each.hostname}:{each.port}",
                }
                for each in master.agents.values()
            }

    def _fail_task(self, request: Request) -> Json:
        """End a task as an agent does: ``{"task_id", "reason", "message"}``."""
        order = request.json()
        with self._lock:
            for agent in self._master.agents.values() if self._master else ():
                for key in [each for each in agent.tasks if each[1] == order["task_id"]]:
                    agent.fail(key, order["reason"], order["message"])
                    return {}
        msg = f"no agent has the task {order['task_id']}"
        raise LookupError(msg)


if __name__ == "__main__":
    MesosServer(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])).run()
