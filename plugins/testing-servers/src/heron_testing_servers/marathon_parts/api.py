"""Marathon's REST interface and the files of Mesos: ``python -m …marathon_parts.api FOLDER PORT …``.

It is written from the published contract (RAML and documentation of Marathon 1.8, Mesos' documentation of its HTTP
endpoints). `marathon` starts it for tests; decision 090 lists what it leaves out.
"""

from __future__ import annotations

import base64
import json
import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from heron_testing_servers.http_service import Answer, HttpService, Request, RequestFaults
from heron_testing_servers.marathon_parts.apps import Agent, Refusal, path_id, plan
from heron_testing_servers.marathon_parts.orchestrator import Orchestrator
from heron_testing_servers.marathon_parts.root import Rights, Root
from heron_testing_servers.marathon_parts.sandboxes import MesosSandboxes
from heron_testing_servers.marathon_parts.views import MarathonViews, embeds

__all__ = ["MarathonApi"]

Json = dict[str, Any]

_VERSION = "1.8.222"
_HEARTBEAT_S = 5.0


class MarathonApi:
    """Answers requests of clients."""

    def __init__(self, orchestrator: Orchestrator, address: str, mesos: str, administrator: str) -> None:
        """Take the addresses of itself and of the master of Mesos, and the token with all rights."""
        self._marathon = orchestrator
        self._address = address
        self._mesos = mesos
        self._administrator = administrator
        self._state = orchestrator.state.document
        self._views = MarathonViews(orchestrator)

    def respond(self, request: Request) -> Answer:
        """Answer one request."""
        try:
            rights = self._rights(request)
            return self._route(request, rights)
        except Refusal as refusal:
            more = {"www_authenticate": 'Basic realm="Marathon"'} if refusal.status == 401 else {}
            return Answer.json(refusal.document, refusal.status, **more)

    def _rights(self, request: Request) -> Rights:
        kind, _, secret = request.headers.get("authorization", "").replace("token=", "token ", 1).partition(" ")
        try:
            secret = base64.b64decode(secret).decode() if kind == "Basic" else secret
        except ValueError:
            secret = ""
        if secret == self._administrator:
            return Rights(None)
        if secret not in self._state["users"]:
            raise Refusal(401, "Invalid username or password.")
        return Rights(self._state["users"][secret])

    def _route(self, request: Request, rights: Rights) -> Answer:
        kind, _, rest = request.path.removeprefix("/v2/").partition("/")
        if request.path == "/ping":
            return Answer(body=b"pong", headers={"content-type": "text/plain"})
        routes: dict[str, Callable[[Request, str, Rights], Answer]] = {
            "apps": self._apps,
            "groups": self._groups,
            "deployments": self._deployments,
            "tasks": self._tasks,
            "queue": self._queue,
            "info": lambda *_: Answer.json(self._info()),
            "leader": lambda *_: Answer.json({"leader": self._address}),
        }
        if request.path == "/v2/events":
            return self._events(request)
        if not request.path.startswith("/v2/") or kind not in routes:
            raise Refusal(404, "HTTP 404 Not Found")
        with self._marathon.state.lock:
            return routes[kind](request, rest, rights)

    def _apps(self, request: Request, rest: str, rights: Rights) -> Answer:
        return self._app(request, rest, rights) if rest.strip("/") else self._all_apps(request, rights)

    def _app(self, request: Request, rest: str, rights: Rights) -> Answer:
        name, part, more = _split(rest, ("tasks", "versions", "restart"))
        if name.endswith("/*"):
            return Answer.json({"*": self._views.apps(request, rights, name[:-1])})
        if request.method in {"PUT", "PATCH"} and not part:
            return self._put_app(request, name, rights)
        app = self._state["apps"].get(name)
        if app is None:
            raise Refusal(404, f"App '{name}' does not exist")
        if part == "tasks":
            return self._app_tasks(request, app, more, rights)
        if part == "restart" or request.method == "DELETE":
            return self._end_app(request, name, rights, restart=part == "restart")
        rights.check("view", name)
        if part == "versions":
            return self._versions(name, more)
        return Answer.json({"app": self._views.app(app, embeds(request, "app.") | {"tasks", "lastTaskFailure"})})

    def _end_app(self, request: Request, name: str, rights: Rights, *, restart: bool) -> Answer:
        """Delete an app, or end its tasks so that others start."""
        rights.check("update" if restart else "delete", name)
        target = Root(self._state, rights)
        if restart:
            del target.apps[name]["versionInfo"]
            return self._deployed(target, request, restarted=[name])
        del target.apps[name]
        return self._deployed(target, request)

    def _all_apps(self, request: Request, rights: Rights) -> Answer:
        if request.method == "GET":
            return Answer.json({"apps": self._views.apps(request, rights, "/")})
        document = _document(request)
        target = Root(self._state, rights)
        if request.method == "POST":
            app = target.add_app(document)
            deployment = self._marathon.deploy(target, force=_flag(request, "force"))
            shown = self._views.app(self._state["apps"][app["id"]], {"tasks", "counts", "deployments"})
            location = {"location": f"/v2/apps{app['id']}", "marathon_deployment_id": deployment["id"]}
            return Answer.json(shown, 201, **location)
        if request.method != "PUT" or not isinstance(document, list):
            raise Refusal(405, "HTTP 405 Method Not Allowed")
        for each in document:
            target.merge_app(each, self._state["versions"], partial=_flag(request, "partialUpdate", default=True))
        return self._deployed(target, request)

    def _put_app(self, request: Request, name: str, rights: Rights) -> Answer:
        exists = name in self._state["apps"]
        if request.method == "PATCH" and not exists:
            raise Refusal(404, f"App '{name}' does not exist")
        document = _document(request)
        if not isinstance(document, dict):
            raise Refusal(400, "Invalid JSON", details=[{"path": "/", "errors": ["error.expected.jsobject"]}])
        target = Root(self._state, rights)
        partial = request.method == "PATCH" or _flag(request, "partialUpdate", default=True)
        target.merge_app({**document, "id": name}, self._state["versions"], partial=partial)
        return self._deployed(target, request, status=200 if exists else 201)

    def _groups(self, request: Request, rest: str, rights: Rights) -> Answer:
        name, part, _ = _split(rest, ("versions", "apps"))
        group = self._state["groups"].get(name)
        if request.method in {"POST", "PUT"}:
            return self._put_group(request, name, rights)
        if group is None:
            raise Refusal(404, f"Group '{name}' does not exist")
        if request.method == "DELETE":
            target = Root(self._state, rights)
            target.remove_group(name)
            return self._deployed(target, request)
        rights.check("view", name)
        if part == "apps":
            return Answer.json(self._views.apps(request, rights, name))
        if part == "versions":
            return Answer.json([group["version"]])
        return Answer.json(self._views.group(name, request, rights))

    def _put_group(self, request: Request, base: str, rights: Rights) -> Answer:
        update = _document(request)
        if not isinstance(update, dict):
            raise Refusal(400, "Invalid JSON", details=[{"path": "/", "errors": ["error.expected.jsobject"]}])
        name = path_id(update["id"], base) if "id" in update else base
        exists = name in self._state["groups"]
        rights.check("update" if exists else "create", name)
        if request.method == "POST" and exists:
            raise Refusal(409, f"Group {name} is already created. Use PUT to change this group.")
        if name in self._state["apps"]:
            raise Refusal(409, f"An app with the path {name} already exists.")
        target = Root(self._state, rights)
        target.change_group(name, update)
        if _flag(request, "dryRun"):
            return Answer.json({"steps": [{"actions": each} for each in plan(self._state["apps"], target.apps)]})
        return self._deployed(target, request, status=201 if request.method == "POST" else 200)

    def _deployments(self, request: Request, rest: str, rights: Rights) -> Answer:
        deployments = self._state["deployments"]
        if request.method == "GET":
            shown = [
                each for each in deployments.values() if any(rights.has("view", app) for app in each["affectedApps"])
            ]
            return Answer.json([self._views.deployment(each) for each in shown])
        if rest not in deployments:
            raise Refusal(404, f"DeploymentPlan {rest} does not exist")
        for app in deployments[rest]["affectedApps"]:
            rights.check("update", app)
        undoing = self._marathon.undo(rest, force=_flag(request, "force"))
        if undoing is None:
            return Answer(202)
        return Answer.json({"version": undoing["version"], "deploymentId": undoing["id"]})

    def _tasks(self, request: Request, rest: str, rights: Rights) -> Answer:
        tasks = self._state["tasks"]
        if request.method == "GET":
            shown = [each for each in tasks.values() if rights.has("view", each["appId"])]
            return Answer.json({"tasks": [self._views.task(each) for each in shown]})
        if rest != "delete" or request.method != "POST":
            raise Refusal(405, "HTTP 405 Method Not Allowed")
        names = _document(request)["ids"]
        if invalid := [each for each in names if "." not in each]:
            raise Refusal(400, f"Invalid task id {invalid[0]}")
        found = [tasks[each] for each in names if each in tasks]  # one that has ended meanwhile is no error
        for each in found:
            rights.check("update", each["appId"])
        return self._kill(request, found, "tasks")

    def _app_tasks(self, request: Request, app: Json, name: str, rights: Rights) -> Answer:
        tasks = self._marathon.tasks.of(app["id"])
        if request.method == "GET":
            rights.check("view", app["id"])
            return Answer.json({"tasks": [self._views.task(each) for each in tasks]})
        rights.check("update", app["id"])
        if name:
            tasks = [each for each in tasks if each["id"] == name]
            if not tasks:
                raise Refusal(404, f"Task '{name}' does not exist")
        elif host := request.query.get("host"):
            tasks = [each for each in tasks if each["host"] == host]
        return self._kill(request, tasks, "task" if name else "tasks")

    def _kill(self, request: Request, tasks: list[Json], kind: str) -> Answer:
        scale, wipe = _flag(request, "scale"), _flag(request, "wipe")
        if scale and wipe:
            raise Refusal(400, "You cannot use scale and wipe at the same time.")
        if scale:
            target = Root(self._state, Rights(None))
            for each in tasks:
                if each["state"] != "TASK_KILLING":
                    app = target.apps[each["appId"]]
                    app["instances"] = max(0, app["instances"] - 1)
            answer = self._deployed(target, request)
            self._marathon.tasks.kill(tasks)
            return answer
        shown = [self._views.task(each) for each in tasks]
        self._marathon.tasks.kill(tasks, wipe=wipe)
        return Answer.json({kind: shown[0] if kind == "task" else shown})

    def _queue(self, request: Request, rest: str, rights: Rights) -> Answer:
        if rest.endswith("/delay"):
            name = path_id(rest.removesuffix("/delay"))
            if name not in {each["app"]["id"] for each in self._marathon.queued()}:
                raise Refusal(404, f"Application {name} not found in tasks queue.")
            rights.check("update", name)
            self._marathon.reset_delay(name)
            return Answer(204)
        with_offers = "lastUnusedOffers" in request.query.get("embed", "")
        found = []
        for each in self._marathon.queued():
            if rights.has("view", each["app"]["id"]):
                reasons = each.pop("reasons", {})
                unused = [{"offer": {"hostname": host}, "reason": [why]} for host, why in reasons.items()]
                found.append({**each, **({"lastUnusedOffers": unused} if with_offers else {})})
        return Answer.json({"queue": found})

    def _versions(self, name: str, version: str) -> Answer:
        versions = self._state["versions"][name]
        if not version:
            return Answer.json({"versions": sorted(versions, reverse=True)})
        if version not in versions:
            raise Refusal(404, f"App '{name}' does not exist in version {version}")
        return Answer.json(versions[version])

    def _info(self) -> Json:
        config = {
            "mesos_leader_ui_url": f"http://{self._mesos}/",
            "executor": "//cmd",
            "features": [],
            "checkpoint": True,
        }
        return {
            "name": "marathon",
            "version": _VERSION,
            "buildref": "unknown",
            "elected": True,
            "leader": self._address,
            "frameworkId": self._marathon.tasks.framework,
            "marathon_config": {"master": self._mesos, "hostname": "127.0.0.1", **config},
            "http_config": {"http_port": int(self._address.rpartition(":")[2]), "https_port": 8443},
            "zookeeper_config": {},
        }

    def _events(self, request: Request) -> Answer:
        wanted = set(filter(None, request.query.get("event_type", "").split(",")))

        def stream() -> Iterator[bytes]:
            with self._marathon.listening() as listener:
                listener.put({"eventType": "event_stream_attached", "remoteAddress": "127.0.0.1"})
                while True:
                    try:
                        event = listener.get(timeout=_HEARTBEAT_S)
                    except queue.Empty:
                        yield b"\r\n"
                        continue
                    if not wanted or event["eventType"] in wanted:
                        yield f"event: {event['eventType']}\r\ndata: {json.dumps(event)}\r\n\r\n".encode()

        return Answer(body=stream(), headers={"content-type": "text/event-stream"})

    def _deployed(self, target: Root, request: Request, *, status: int = 200, restarted: Iterable[str] = ()) -> Answer:
        made = self._marathon.deploy(target, force=_flag(request, "force"), restarted=restarted)
        shown = {"version": made["version"], "deploymentId": made["id"]}
        return Answer.json(shown, status, marathon_deployment_id=made["id"])


def _document(request: Request) -> Any:  # noqa: ANN401 - of a client
    try:
        return request.json()
    except ValueError as error:
        raise Refusal(400, "Invalid JSON", details=[{"path": "", "errors": [str(error)]}]) from error


def _flag(request: Request, name: str, *, default: bool = False) -> bool:
    return request.query.get(name, str(default)).lower() == "true"


def _split(rest: str, parts: tuple[str, ...]) -> tuple[str, str, str]:
    """Split the end of a path into an id, the part that follows it, and what follows that."""
    words = [each for each in rest.split("/") if each]
    for length in (1, 2):
        if len(words) >= length and words[-length] in parts:
            return "/" + "/".join(words[:-length]), words[-length], words[-1] if length == 2 else ""
    return "/" + "/".join(words), "", ""


def _serve(folder: Path, port: int, owner: int, options: Json) -> None:
    agents = [Agent(**each) for each in options["agents"]]
    orchestrator = Orchestrator(folder, owner, agents)
    mesos, faults = options["mesos_port"], RequestFaults(folder / "faults.json")

    def set_agent(request: Request) -> object:
        if request.method == "POST":
            orchestrator.tasks.set_agent(**request.json())
        return {each: each not in orchestrator.state.document["lost"] for each in orchestrator.tasks.agents}

    def out_of_memory(request: Request) -> object:
        orchestrator.tasks.out_of_memory(**request.json())
        return {}

    def add_user(request: Request) -> object:
        orchestrator.add_user(**request.json())
        return {}

    controls = {
        "containers": lambda _: orchestrator.tasks.containers.running(),
        "agents": set_agent,
        "out-of-memory": out_of_memory,
        "users": add_user,
    }
    api = MarathonApi(orchestrator, f"127.0.0.1:{port}", f"127.0.0.1:{mesos}", options["token"])
    files = MesosSandboxes(orchestrator, mesos + 1, folder / "containers")
    services = [HttpService(mesos, files.master, faults, {})]
    services += [HttpService(mesos + 1, files.agent(each), faults, {}, host=each.host) for each in agents]
    for each in services:
        threading.Thread(target=each.run, daemon=True).start()
    service = HttpService(port, api.respond, faults, controls)
    orchestrator.run()
    service.run()


if __name__ == "__main__":
    _folder, _port, _owner, _options = sys.argv[1:]
    _serve(Path(_folder), int(_port), int(_owner), json.loads(_options))
