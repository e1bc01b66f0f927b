"""The calls of schedulers to the Mesos test server: what is refused in which words, and what is carried out."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from heron_testing_servers.http_service import Answer, Request
from heron_testing_servers.mesos_parts.framework import Framework, Subscription
from heron_testing_servers.mesos_parts.master import Master

__all__ = ["RefusedCall", "answer_call"]

Json = dict[str, Any]

_JSON = "application/json"
_WITHOUT_BODY = {"TEARDOWN", "REVIVE", "SUPPRESS"}
_CALLS = {"ACCEPT", "ACKNOWLEDGE", "DECLINE", "KILL", "RECONCILE", "SHUTDOWN", "SUBSCRIBE", *_WITHOUT_BODY}


class RefusedCall(Exception):
    """A request that gets an answer in words instead."""

    def __init__(self, status: int, message: str = "", **headers: str) -> None:
        super().__init__(message)
        self.answer = Answer(status, message.encode(), {name.replace("_", "-"): text for name, text in headers.items()})


def answer_call(master: Master, request: Request, user: str | None, on_end: Callable[[Subscription], None]) -> Answer:
    """Carry a call out. `user` is the authenticated principal; `on_end` is called when a subscription has ended.

    Raises:
        RefusedCall: when the master refuses it.
    """
    call = _parsed(request)
    if problem := _malformed(call, user):
        raise RefusedCall(400, f"Failed to validate scheduler::Call: {problem}")
    if call["type"] == "SUBSCRIBE":
        return _subscribe(master, request, call["subscribe"], user, on_end)
    framework = _subscribed(master, request, call["framework_id"]["value"])
    kind, body = call["type"], call.get(call["type"].lower(), {})
    if kind == "TEARDOWN":
        master.teardown(framework)
    elif kind == "RECONCILE":
        master.reconcile(framework, body.get("tasks", []))
    elif kind in {"REVIVE", "SUPPRESS"}:
        getattr(framework, kind.lower())(body.get("roles", []))
    elif kind == "DECLINE":
        master.offers.decline(framework, [each["value"] for each in body["offer_ids"]], body.get("filters", {}))
    elif kind != "SHUTDOWN":  # it ends a custom executor, and there are none
        getattr(master, kind.lower())(framework, body)
    return Answer(202)


def _parsed(request: Request) -> Json:
    if request.method != "POST":
        raise RefusedCall(405, f"Expecting one of {{ 'POST' }}, but received '{request.method}'", allow="POST")
    if not request.headers.get("content-type", "").startswith(_JSON):
        raise RefusedCall(415, f"Expecting 'Content-Type' of {_JSON} (this server has no application/x-protobuf)")
    try:
        call = request.json()
    except ValueError as error:
        raise RefusedCall(400, f"Failed to parse body into JSON: {error}") from error
    if not isinstance(call, dict) or call.get("type") not in _CALLS:
        raise RefusedCall(400, f"Failed to convert JSON into Call protobuf: {str(call)[:200]}")
    return call


def _malformed(call: Json, user: str | None) -> str:
    """Return what is wrong with a call, or an empty text."""
    field = call["type"].lower()
    if call["type"] not in _WITHOUT_BODY and not isinstance(call.get(field), dict):
        return f"Expecting '{field}' to be present"
    if field != "subscribe":
        return "" if call.get("framework_id", {}).get("value") else "Expecting 'framework_id' to be present"
    info = call["subscribe"].get("framework_info", {})
    if missing := [each for each in ("user", "name") if each not in info]:
        return f"Missing required fields: framework_info.{missing[0]}"
    if info.get("id", {}) != call.get("framework_id", {}):
        return "'framework_id' differs from 'subscribe.framework_info.id'"
    principal = info.get("principal", user)
    if user and principal != user:
        return f"Authenticated principal '{user}' does not match principal '{principal}' set in `FrameworkInfo`"
    return ""


def _subscribe(
    master: Master, request: Request, call: Json, user: str | None, on_end: Callable[[Subscription], None]
) -> Answer:
    if "mesos-stream-id" in request.headers:
        raise RefusedCall(400, "Subscribe calls should not include the 'Mesos-Stream-Id' header")
    accepted = {each.partition(";")[0].strip() for each in request.headers.get("accept", "*/*").split(",")}
    if not accepted & {_JSON, "application/*", "*/*"}:
        raise RefusedCall(406, f"Expecting 'Accept' to allow '{_JSON}'")
    info = {**call["framework_info"], **({"principal": user} if user else {})}
    subscription = Subscription(str(uuid.uuid4()), on_end)
    framework = master.subscribe(info, subscription)
    if framework is not None and call.get("suppressed_roles"):
        framework.suppress(call["suppressed_roles"])
    return Answer(200, subscription, {"content-type": _JSON, "mesos-stream-id": subscription.id})


def _subscribed(master: Master, request: Request, framework_id: str) -> Framework:
    framework = master.frameworks.get(framework_id)
    if framework is None:
        raise RefusedCall(400, "Framework cannot be found")
    if framework.subscription is None:
        raise RefusedCall(403, "Framework is not subscribed")
    stream = request.headers.get("mesos-stream-id")
    if stream is None:
        raise RefusedCall(400, "All non-subscribe calls should include the 'Mesos-Stream-Id' header")
    if stream != framework.subscription.id:
        raise RefusedCall(
            400,
            f"The stream ID '{stream}' included in this request didn't match the stream ID currently associated with "
            f"framework ID {framework_id}",
        )
    return framework
