"""The path of the actions on a topology. It refuses them unless the operator allows actions."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from heron_service_tracker.calls.action_items import ActionsAnswer, decode_request
from heron_service_tracker.calls.actions import Actions
from heron_service_tracker.calls.daemon_thread import in_daemon
from heron_service_tracker.paths.openapi import ACTIONS_PATH
from heron_service_tracker.paths.parameters import parsed
from heron_service_tracker.paths.problems import problem_response
from heron_service_tracker.request_errors import RefusedByOperatorError
from heron_service_tracker.watches.observations import Observations

__all__ = ["action_routes"]

_JSON = "application/json"
_MOST_BYTES = 64 * 1024  # the parallelism of a thousand components


def action_routes(observations: Observations, actions: Actions | None) -> list[Route]:
    """The routes of the application. Without `actions` they refuse, and say what allows them."""
    if actions is None:
        return [Route(ACTIONS_PATH, _refused, methods=["GET", "POST"])]

    async def listed(request: Request) -> Response:
        parsed((), request.query_params.multi_items())
        place = _known(observations, request)
        return Response(msgspec.json.encode(ActionsAnswer(actions.items(*place))), media_type=_JSON)

    async def begun(request: Request) -> Response:
        parsed((), request.query_params.multi_items())
        # A page of another site can send a form, and no JSON.
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            return problem_response(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send the action as {_JSON}")
        body = await _body(request)
        if body is None:
            return problem_response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"an action has at most {_MOST_BYTES} bytes")
        place = _known(observations, request)
        wanted = decode_request(body, place[1])
        sender = request.client.host if request.client else ""
        item = await in_daemon(lambda: actions.begin(*place, wanted, sender), "action request")
        return Response(msgspec.json.encode(item), HTTPStatus.ACCEPTED, media_type=_JSON)

    async def answer(request: Request) -> Response:
        return await (begun if request.method == "POST" else listed)(request)

    return [Route(ACTIONS_PATH, answer, methods=["GET", "POST"])]  # one route: a refused method gets both names


async def _refused(_request: Request) -> Response:
    msg = "this server changes no topologies; start it with --allow-actions and --token-file FILE"
    raise RefusedByOperatorError(msg)


def _known(observations: Observations, request: Request) -> tuple[str, str]:
    cluster, topology = request.path_params["cluster"], request.path_params["topology"]
    observations.topology(cluster, topology)  # refuses an unknown one
    return cluster, topology


async def _body(request: Request) -> bytes | None:
    """The body; None when it is too long."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            return None
    return bytes(body)
