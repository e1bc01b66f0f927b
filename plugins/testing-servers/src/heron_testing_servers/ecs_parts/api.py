"""The API of ECS in front of moto: ``python -m heron_testing_servers.ecs_parts.api FOLDER PORT OWNER OPTIONS``.

It answers requests for ECS itself, as the published service model says, and hands those for other services to moto. It
checks signatures and policies of all requests. `ecs` starts it for tests; decision 090 lists what it leaves out.
"""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from heron_testing_servers.ecs_parts.access import AccessError, AwsRequest, check_access, check_rights, parsed
from heron_testing_servers.ecs_parts.agent import EcsAgent, metadata_of
from heron_testing_servers.ecs_parts.catalog import EcsCatalog
from heron_testing_servers.ecs_parts.controller import EcsController
from heron_testing_servers.ecs_parts.definitions import EcsError, refuse
from heron_testing_servers.ecs_parts.services import EcsServices
from heron_testing_servers.http_service import Answer, HttpService, Request, RequestFaults

__all__ = ["EcsApi"]

Json = dict[str, Any]

_OPERATIONS = re.compile(r"(List|Describe|Register|Deregister|Create|Update|Delete|Run|Stop|Tag|Untag)[A-Za-z]+")


class EcsApi:
    """Answers requests of clients."""

    def __init__(self, controller: EcsController, agent: EcsAgent, administrator: tuple[str, str]) -> None:
        """`administrator` is an access key and its secret."""
        self._controller = controller
        self._agent = agent
        self._administrator = administrator
        self._parts = EcsCatalog(controller), EcsServices(controller)

    def respond(self, request: Request) -> Answer:
        """Answer one request."""
        if request.path.startswith("/v4/"):
            return self._metadata(request.path.split("/")[2], task=request.path.endswith("/task"))
        asked = parsed(request)
        try:
            check_access(request, asked, self._administrator, self._controller.state.document["users"])
            if asked.service != "ecs":
                answer = self._agent.forward(request)
                if asked.name == "s3:GetObject" and answer.status == 404:  # only who may list learns that it is missing
                    of_bucket = replace(asked, action="ListBucket", parameters={**asked.parameters, "Key": ""})
                    check_rights(of_bucket, self._controller.state.document["users"])
                return answer
            operation = self._operation(asked.action)
            with self._controller.state.lock:
                document = operation(asked)
            return Answer.json(document, content_type="application/x-amz-json-1.1")
        except (AccessError, EcsError) as error:
            if "x-amz-target" in request.headers:
                told = {"__type": error.kind, "message": str(error)}
                return Answer.json(told, 400, content_type="application/x-amz-json-1.1")
            text = f"<Error><Code>{error.kind}</Code><Message>{error}</Message></Error>"
            wrapped = text if asked.service == "s3" else f"<ErrorResponse>{text}</ErrorResponse>"
            return Answer(403, wrapped.encode(), {"content-type": "text/xml"})

    def _operation(self, action: str) -> Callable[[AwsRequest], Json]:
        """The method ``create_service`` for the action ``CreateService``."""
        name = re.sub(r"(?<!^)([A-Z])", r"_\1", action).lower()
        found = [getattr(part, name) for part in self._parts if _OPERATIONS.fullmatch(action) and hasattr(part, name)]
        if not found:
            refuse("UnknownOperationException", f"{action} is not an operation of this server")
        operation = cast("Callable[[AwsRequest], Json]", found[0])
        return lambda asked: copy.deepcopy(operation(asked))  # the answer has parts of the state

    def _metadata(self, name: str, *, task: bool) -> Answer:
        """The task metadata endpoint of version 4."""
        with self._controller.state.lock:
            for each in self._controller.state.document["tasks"].values():
                for container in each["containers"]:
                    if container["runtimeId"] == name:
                        return Answer.json(metadata_of(each, container if not task else None))
        return Answer(404)


def _serve(folder: Path, port: int, owner: int, options: Json) -> None:
    agent = EcsAgent(options["moto"], options["region"])
    controller = EcsController(folder, owner, options, agent)
    state = controller.state
    state.document["url"] = f"http://127.0.0.1:{port}"
    api = EcsApi(controller, agent, (options["access_key"], options["secret_key"]))

    def control(change: Callable[..., None]) -> Callable[[Request], object]:
        def run(request: Request) -> object:
            change(**request.json())
            return {}

        return run

    def add(kind: str, name: str, value: object) -> None:
        with state.lock:
            state.document[kind][name] = value
            state.save()

    def set_fargate(*, capacity: bool) -> None:
        with state.lock:
            state.document["fargate"] = capacity
            state.save()

    controls = {
        "containers": lambda _: controller.tasks.containers.running(),
        "add": control(add),
        "fargate": control(set_fargate),
        "hold": control(controller.tasks.hold),
        "instances": control(controller.set_instance),
        "interrupt": control(controller.tasks.interrupt),
        "out-of-memory": control(controller.tasks.out_of_memory),
    }
    faults = RequestFaults(folder / "faults.json")
    service = HttpService(port, api.respond, faults, controls, lambda each: parsed(each).name)
    controller.run()
    service.run()


if __name__ == "__main__":
    _folder, _port, _owner, _options = sys.argv[1:]
    _serve(Path(_folder), int(_port), int(_owner), json.loads(_options))
