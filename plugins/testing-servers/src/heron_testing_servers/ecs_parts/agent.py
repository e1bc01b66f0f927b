"""What an agent of ECS does for a container with the services of moto: secrets before its start, and its output."""

from __future__ import annotations

import contextlib
import json
import math
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from heron.clock import wall_s
from heron_testing_servers.container_processes import Container
from heron_testing_servers.ecs_parts.access import allows, arn
from heron_testing_servers.http_service import Answer, Request

__all__ = ["EcsAgent", "StartError", "metadata_of"]

Json = dict[str, Any]

_POLL_S = 0.1
_NO_STREAM = (
    "ResourceInitializationError: failed to validate logger args: create stream has been retried 1 times: "
    "failed to create Cloudwatch log stream: {}"
)
_NO_SECRET = (
    "ResourceInitializationError: unable to pull secrets or registry auth: execution resource retrieval failed: "
    "unable to retrieve secret from asm: service call has been retried 1 time(s): {}"
)


class StartError(Exception):
    """A container cannot start; the message is the reason in the words of ECS."""


class EcsAgent:
    """Works with the rights of execution roles, which have policies by their names."""

    def __init__(self, url: str, region: str) -> None:
        self._url = url
        self._region = region

    def prepare(self, task: Json, each: Json, role: str, roles: Mapping[str, Json]) -> dict[str, str]:
        """Return the values of the secrets of a container definition, and make its log stream.

        Raises:
            StartError: when one of them is missing, or the role lacks a right.
        """
        try:
            found = {one["name"]: self._secret(one["valueFrom"], role, roles) for one in each.get("secrets", ())}
        except (StartError, ValueError, KeyError) as error:
            raise StartError(_NO_SECRET.format(error)) from error
        try:
            self._make_stream(task, each, role, roles)
        except StartError as error:
            raise StartError(_NO_STREAM.format(error)) from error
        return found

    def follow(self, container: Container, task: Json, each: Json) -> None:
        """Bring the output of a container to CloudWatch Logs, until it has ended."""
        if _logs(each):
            threading.Thread(
                target=self._send_output, args=(container, _logs(each), _stream(task, each)), daemon=True
            ).start()

    def forward(self, request: Request) -> Answer:
        """Hand a request of a client on as it is."""
        dropped = {"content-length", "connection", "expect"}
        kept = {name: value for name, value in request.headers.items() if name not in dropped}
        kept.setdefault("content-type", "application/octet-stream")  # else urllib says that it is a form
        query = f"?{urlencode(request.queries, doseq=True)}" if request.queries else ""
        url = self._url + quote(request.path) + query
        asked = urllib.request.Request(url, request.body or None, kept, method=request.method)  # noqa: S310
        try:
            with urllib.request.urlopen(asked) as answer:  # noqa: S310
                status, body, headers = answer.status, answer.read(), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                status, body, headers = error.code, error.read(), error.headers
        shown = {name: headers[name] for name in ("content-type", "etag") if name in headers}
        return Answer(status, body, {"content-type": "application/json", **shown})

    def _secret(self, place: str, role: str, roles: Mapping[str, Json]) -> str:
        if ":secretsmanager:" in place:
            parts = place.split(":")
            name, (key, stage, version) = ":".join(parts[:7]), [*parts[7:], "", "", ""][:3]
            self._need(role, roles, "secretsmanager:GetSecretValue", name)
            more = {"VersionStage": stage, "VersionId": version}
            chosen = {each: value for each, value in more.items() if value}
            told = self._ask("secretsmanager", "secretsmanager.GetSecretValue", SecretId=name, **chosen)
            return str(json.loads(told["SecretString"])[key] if key else told["SecretString"])
        name = place.partition(":parameter")[2] or place
        self._need(role, roles, "ssm:GetParameters", arn("ssm", self._region, f"parameter/{name.lstrip('/')}"))
        told = self._ask("ssm", "AmazonSSM.GetParameters", Names=[name], WithDecryption=True)
        if not told["Parameters"]:
            msg = f"invalid ssm parameters: {name}"
            raise StartError(msg)
        return str(told["Parameters"][0]["Value"])

    def _make_stream(self, task: Json, each: Json, role: str, roles: Mapping[str, Json]) -> None:
        if not _logs(each):
            return
        group, stream = _logs(each), _stream(task, each)
        place = arn("logs", self._region, f"log-group:{group}")
        if each["logConfiguration"]["options"].get("awslogs-create-group") == "true":
            self._need(role, roles, "logs:CreateLogGroup", place)
            with contextlib.suppress(StartError):  # it exists
                self._ask("logs", "Logs_20140328.CreateLogGroup", logGroupName=group)
        self._need(role, roles, "logs:CreateLogStream", f"{place}:log-stream:{stream}")
        self._ask("logs", "Logs_20140328.CreateLogStream", logGroupName=group, logStreamName=stream)

    def _need(self, role: str, roles: Mapping[str, Json], action: str, resource: str) -> None:
        policy = roles.get(role.rpartition("/")[2])
        if policy is None or not allows(policy, action, resource, {}):
            who = f"AccessDeniedException: User: {role} is not authorized to perform: {action} on resource: {resource}"
            msg = f"{who} because no identity-based policy allows the {action} action"
            raise StartError(msg)

    def _send_output(self, container: Container, group: str, stream: str) -> None:
        pause, rest, ended = threading.Event(), "", False
        sent = container.sandbox.parent / "sent"  # how far the log has it, for a server that is started again
        with (container.sandbox / "stdout").open(encoding="utf-8", errors="replace", newline="\n") as file:
            file.seek(int(sent.read_text(encoding="ascii")) if sent.exists() else 0)
            while not ended:
                ended = container.end is not None  # before the last look, so nothing is missed
                *lines, rest = (rest + file.read()).split("\n")
                events = [
                    {"timestamp": math.floor(wall_s() * 1000), "message": line}
                    for line in (*lines, *([rest] if ended else ()))
                    if line
                ]
                if events:
                    where = {"logGroupName": group, "logStreamName": stream}
                    self._ask("logs", "Logs_20140328.PutLogEvents", logEvents=events, **where)
                    sent.write_text(str(file.tell() - len(rest.encode())), encoding="ascii")
                elif not ended:
                    pause.wait(_POLL_S)

    def _ask(self, service: str, target: str, **parameters: object) -> Json:
        credential = f"Credential=agent/20200101/{self._region}/{service}/aws4_request"
        headers = {
            "x-amz-target": target,
            "content-type": "application/x-amz-json-1.1",
            "authorization": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=none",
        }
        request = urllib.request.Request(self._url, json.dumps(parameters).encode(), headers)  # noqa: S310 - own
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310
                return dict(json.loads(answer.read() or b"{}"))
        except urllib.error.HTTPError as error:
            with error:
                told = json.loads(error.read())
            msg = f"{told.get('__type', '').rpartition('#')[2]}: {told.get('message') or told.get('Message')}"
            raise StartError(msg) from error


def _logs(each: Json) -> str:
    """The log group of a container definition; empty without ``awslogs``."""
    configuration = each.get("logConfiguration", {})
    return str(configuration["options"]["awslogs-group"]) if configuration.get("logDriver") == "awslogs" else ""


def _stream(task: Json, each: Json) -> str:
    prefix = each["logConfiguration"]["options"].get("awslogs-stream-prefix", "ecs")
    return f"{prefix}/{each['name']}/{task['taskArn'].rpartition('/')[2]}"


def metadata_of(task: Json, container: Json | None) -> Json:
    """Return the metadata of a container, or of its task, as the endpoint of version 4 shows them."""
    if container is not None:
        addresses = [each["privateIpv4Address"] for each in container["networkInterfaces"]]
        network = {"NetworkMode": "awsvpc", "IPv4Addresses": addresses} if addresses else {"NetworkMode": "host"}
        named = {"DockerId": container["runtimeId"], "Name": container["name"], "Image": container["image"]}
        return {**named, "Networks": [network]}
    family, _, revision = task["taskDefinitionArn"].rpartition("/")[2].partition(":")
    return {
        "Cluster": task["clusterArn"],
        "TaskARN": task["taskArn"],
        "Family": family,
        "Revision": revision,
        "DesiredStatus": task["desiredStatus"],
        "KnownStatus": task["lastStatus"],
        "LaunchType": task.get("launchType"),
        "Containers": [metadata_of(task, each) for each in task["containers"]],
    }
