"""The master and the agents of Mesos, as far as a user finds the output of a task: their states and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from heron_testing_servers.http_service import Answer, Request
from heron_testing_servers.marathon_parts.apps import Agent
from heron_testing_servers.marathon_parts.orchestrator import Orchestrator

__all__ = ["MesosSandboxes"]

Json = dict[str, Any]


class MesosSandboxes:
    """Answers requests to the master and to agents; the sandboxes are in one folder."""

    def __init__(self, orchestrator: Orchestrator, port: int, folder: Path) -> None:
        self._marathon = orchestrator
        self._port = port
        self._folder = folder

    def master(self, request: Request) -> Answer:
        """Answer a request to the master."""
        if request.path.removeprefix("/master") not in {"/state", "/state.json"}:
            return Answer(404)
        agents = [
            {"id": each.id, "hostname": each.host, "pid": f"slave(1)@{each.host}:{self._port}", "port": self._port}
            for each in self._marathon.tasks.agents.values()
        ]
        framework = {"id": self._marathon.tasks.framework, "name": "marathon", "active": True}
        return Answer.json({"slaves": agents, "frameworks": [framework]})

    def agent(self, agent: Agent) -> Callable[[Request], Answer]:
        """Return what answers requests to an agent."""

        def respond(request: Request) -> Answer:
            if agent.host in self._marathon.state.document["lost"]:
                return Answer(503)
            path = request.path.removeprefix("/slave(1)")
            if path in {"/state", "/state.json"}:
                return Answer.json(self._state(agent))
            if not path.startswith("/files/"):
                return Answer(404)
            return self._files(path.removeprefix("/files/"), request.query)

        return respond

    def _state(self, agent: Agent) -> Json:
        state = self._marathon.state.document

        def executors(kind: str) -> list[Json]:
            found = [each for each in list(state[kind].values()) if each["host"] == agent.host]
            return [
                {"id": each["id"], "source": each["id"], "directory": str(self._folder / each["id"] / "sandbox")}
                for each in found
            ]

        framework = {"id": self._marathon.tasks.framework, "name": "marathon"}
        running = {"executors": executors("tasks"), "completed_executors": executors("ended")}
        return {
            "id": agent.id,
            "hostname": agent.host,
            "frameworks": [{**framework, **running}],
            "completed_frameworks": [],
        }

    def _files(self, action: str, query: Mapping[str, str]) -> Answer:
        place = Path(query.get("path", "/")).resolve()
        if not place.is_relative_to(self._folder.resolve()) or not place.exists():
            return Answer(404)
        if action == "browse":
            return Answer.json([{"path": str(each), "size": each.stat().st_size} for each in sorted(place.iterdir())])
        if action == "download":
            return Answer(body=place.read_bytes(), headers={"content-type": "application/octet-stream"})
        offset, length = int(query.get("offset", "0")), int(query.get("length", "-1"))
        if offset < 0:
            return Answer.json({"data": "", "offset": place.stat().st_size})
        with place.open("rb") as file:
            file.seek(offset)
            return Answer.json({"data": file.read(length).decode("utf-8", "replace"), "offset": offset})
