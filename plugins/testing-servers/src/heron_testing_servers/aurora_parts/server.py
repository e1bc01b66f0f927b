"""A scheduler of Aurora and its hosts in one process, a server of `ContractServer`.

It is written from the published interface: thrift over HTTP at ``/api``, in the protocols of the published client
(binary) and of the web pages (TJSON). Tasks are processes of this machine, run by `thermos_runner`. Each host serves
the files of its tasks as the observer of Thermos does.
"""

from __future__ import annotations

import base64
import fnmatch
import json
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from heron_testing_servers.aurora_parts import thermos_runner
from heron_testing_servers.aurora_parts.interface import BINARY, JSON, aurora, method_of, processed
from heron_testing_servers.aurora_parts.placement import Host, Wanted
from heron_testing_servers.aurora_parts.reads import AuroraError, Quotas, answer
from heron_testing_servers.aurora_parts.tasks import Key, TaskStore
from heron_testing_servers.aurora_parts.updates import UpdateStore
from heron_testing_servers.aurora_parts.writes import AuroraAdmin
from heron_testing_servers.container_processes import Container, ContainerEnd, ContainerProcesses
from heron_testing_servers.contract_server import CONTAINERS
from heron_testing_servers.http_service import Answer, HttpService, Request, RequestFaults

__all__ = ["AuroraServer"]

Json = dict[str, Any]

_TICK_S = 0.05
_AUTH_FAILED = aurora.ResponseCode.AUTH_FAILED


class AuroraServer:
    """The HTTP side, and the clock."""

    def __init__(self, folder: Path, port: int, owner: int, options: Json) -> None:
        self._port = port
        self._users: Json = options["users"]
        self._lock = threading.Condition(threading.RLock())
        self._faults = RequestFaults(folder / "faults.json")
        self._quotas: Quotas = {role: Wanted(*amounts) for role, amounts in options["quotas"].items()}
        hosts = [Host(**{**each, "total": Wanted(*each["total"])}) for each in options["hosts"]]
        self._tasks = TaskStore(folder, hosts, options["times"], self._lock.notify_all)
        self._updates = UpdateStore(folder, self._tasks)
        with self._lock:
            place = folder / CONTAINERS
            self._containers = ContainerProcesses(place, owner, self._ended)
            self._containers.restore()
            self._tasks.containers = self._containers
            self._tasks.recover()

    def run(self) -> None:
        """Serve until the process ends."""
        for host in self._tasks.hosts.values():
            observer = HttpService(host.port, self._observer(host), self._faults, {}, host=host.hostname)
            threading.Thread(target=observer.run, daemon=True).start()
        controls = {CONTAINERS: self._running, "hosts": self._change_host}
        service = HttpService(self._port, self._respond, self._faults, controls, self._operation)
        threading.Thread(target=service.run, daemon=True).start()
        with self._lock:
            while True:
                self._tasks.tick()
                self._updates.tick()
                self._lock.wait(_TICK_S)

    def _ended(self, container: Container, end: ContainerEnd) -> None:
        with self._lock:
            self._tasks.ended(container.name, end)

    def _operation(self, request: Request) -> str:
        """Name a request for faults: the method of thrift, for example ``createJob``."""
        if request.path == "/api" and request.method == "POST":
            try:
                return method_of(request.body, _media_type(request))
            except ValueError:
                pass
        return f"{request.method} {request.path}"

    def _respond(self, request: Request) -> Answer:
        if request.path != "/api":
            return Answer(200 if request.path in {"/health", "/scheduler"} else 404, b"OK")
        if request.method != "POST":
            return Answer(405)
        try:
            method = method_of(request.body, _media_type(request))
        except ValueError as error:
            return Answer(400, str(error).encode())
        user = self._user(request)
        if self._users and (user is None if "authorization" in request.headers else not method.startswith("get")):
            return Answer(401, b"", {"www-authenticate": 'BASIC realm="Apache Aurora Scheduler"'})
        accepted = request.headers.get("accept", "").partition(";")[0].strip()
        handler = _Answering(
            AuroraAdmin(self._tasks, self._updates, self._quotas, user or "UNSECURE", self._permit(user))
        )
        with self._lock:
            body = processed(handler, request.body, _media_type(request), accepted)
            self._lock.notify_all()
        return Answer(200, body, {"content-type": BINARY if accepted == BINARY else JSON})

    def _user(self, request: Request) -> str | None:
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        try:
            name, _, password = base64.b64decode(text, validate=True).decode().partition(":")
        except ValueError:
            return None
        return name if kind == "Basic" and self._users.get(name, {}).get("password") == password else None

    def _permit(self, user: str | None) -> Callable[[str, Key], None]:
        """Return the check of a user's rights: permissions as in Shiro, for example ``thrift.…:createJob:www``."""

        def permit(method: str, key: Key) -> None:
            permission = f"thrift.AuroraSchedulerManager:{method}:{':'.join(key)}"
            allowed = self._users.get(user, {}).get("permissions", ["*"]) if user else ["*"]
            if not any(fnmatch.fnmatchcase(permission, f"{each}*") for each in allowed):
                msg = f"Subject {user} is not permitted to {permission}."
                raise AuroraError(msg, _AUTH_FAILED)

        return permit

    def _observer(self, host: Host) -> Callable[[Request], Answer]:
        def respond(request: Request) -> Answer:
            kind, _, rest = request.path.strip("/").partition("/")
            task_id, _, path = rest.partition("/")
            with self._lock:
                task = self._tasks.tasks.get(task_id)
                mine = task is not None and task.scheduled.assignedTask.slaveId == host.name
            sandbox = (self._containers.sandbox(task_id) if mine else Path("/dev/null")).resolve()
            place = sandbox.joinpath(thermos_runner.LOGS if kind == "logdata" else "", path).resolve()
            if host.mode == "down" or kind not in {"logdata", "filedata", "download"} or not mine:
                return Answer(404)
            if not place.is_relative_to(sandbox) or not place.is_file():
                return Answer.json({}) if kind != "download" else Answer(404, b"No such file")
            if kind == "download":
                return Answer(200, place.read_bytes())
            return Answer.json(_chunk(place, request))

        return respond

    def _running(self, _: Request) -> Json:
        return dict(self._containers.running())

    def _change_host(self, request: Request) -> Json:
        with self._lock:
            if request.method == "POST":
                order = request.json()
                self._tasks.change_mode(self._tasks.hosts[order["name"]], order["mode"])
            return {
                each.name: {"mode": each.mode, "hostname": each.hostname, "url": f"http://{each.hostname}:{each.port}"}
                for each in self._tasks.hosts.values()
            }


class _Answering:
    """The methods of a handler, whose errors become answers."""

    def __init__(self, handler: AuroraAdmin) -> None:
        self._handler = handler

    def __getattr__(self, method: str) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            try:
                return getattr(self._handler, method)(*arguments)
            except AuroraError as error:
                return answer(str(error), error.code)
            except Exception as error:  # as Aurora does
                traceback.print_exc()
                return answer(repr(error), aurora.ResponseCode.ERROR)

        return call


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip()


def _chunk(place: Path, request: Request) -> Json:
    """Return a part of a file as the observer does: from the end without an offset, with the signs of XML escaped."""
    size = place.stat().st_size
    offset, length = (int(request.query.get(name) or -1) for name in ("offset", "length"))
    offset = size if offset < 0 else offset
    with place.open("rb") as file:
        file.seek(offset)
        data = file.read(size - offset if length < 0 else length)
    found: Json = {"offset": offset, "length": len(data)}
    return {**found, "data": escape(data.decode("utf-8", "replace"))} if data else found


if __name__ == "__main__":
    AuroraServer(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])).run()
