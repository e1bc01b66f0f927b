"""The application: paths, answers and errors of HTTP. It reads observations and never waits for a topology."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from heron.driver_kit.core_version import core_version
from heron.errors import HeronError, StoreError
from heron_service_tracker.answers.answer_parts import topology_item
from heron_service_tracker.answers.answers import HealthAnswer, TopologyAnswer
from heron_service_tracker.calls.actions import Actions
from heron_service_tracker.calls.daemon_thread import in_daemon
from heron_service_tracker.calls.questions import Questions
from heron_service_tracker.history.recorder import Recorder
from heron_service_tracker.http.access import Access, AccessCheck
from heron_service_tracker.http.live_stream import LiveStream
from heron_service_tracker.observed.observed import ObservedTopology
from heron_service_tracker.paths.action_routes import action_routes
from heron_service_tracker.paths.heron_routes import heron_routes
from heron_service_tracker.paths.history_path import HISTORY_PARAMETERS, history_answer
from heron_service_tracker.paths.metrics_wait import wait_for_metrics
from heron_service_tracker.paths.openapi import HISTORY_PATH, QUERY_PATH, openapi_document
from heron_service_tracker.paths.operations import API, OPERATIONS, Operation
from heron_service_tracker.paths.parameters import parsed
from heron_service_tracker.paths.problems import problem_response, status_of
from heron_service_tracker.paths.query_path import QUERY_PARAMETERS, query_answer
from heron_service_tracker.paths.task_routes import task_routes
from heron_service_tracker.request_errors import NotYetKnownError
from heron_service_tracker.watches.observations import Observations

__all__ = ["Pages", "application"]

JSON = "application/json"

_SAME_S = 0.2  # the age in an answer is true to this time
_HISTORIES = 4  # that are read at a time
_KEPT = 50  # values of topologies; that of a thousand tasks has a quarter of a megabyte

Endpoint = Callable[[Request], Awaitable[Response]]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pages:
    """Routes that another distribution adds. Paths that match `open_paths` need no token: they hold no data."""

    routes: tuple[BaseRoute, ...] = ()
    open_paths: re.Pattern[str] | None = None


def application(
    observations: Observations,
    access: Access,
    ended: asyncio.Event,
    recorder: Recorder | None = None,
    questions: Questions | None = None,
    pages: Pages = Pages(),
    actions: Actions | None = None,
) -> Starlette:
    """The application for a server. `ended` ends the live streams, which a server would wait for.

    Without `questions` there are no paths that ask tasks. Without `actions` nothing changes a topology, and their path
    says what allows them.
    """
    document = openapi_document()

    async def openapi(_request: Request) -> Response:
        return Response(document, media_type=JSON)

    async def health(_request: Request) -> Response:
        clusters = observations.clusters(looking=False)  # something asks every few seconds whether this process lives
        away = tuple(each.name for each in clusters if each.error)
        number = sum(len(each.topologies) for each in clusters)
        return _json(HealthAnswer(core_version(), len(clusters), away, number))

    routes = [
        Route("/health", health, methods=["GET"]),
        Route(f"{API}/openapi.json", openapi, methods=["GET"]),
        Route(
            f"{API}/clusters/{{cluster}}/topologies/{{topology}}/live",
            _live_endpoint(observations, ended),
            methods=["GET"],
        ),
        Route(HISTORY_PATH, _history_endpoint(observations, recorder), methods=["GET"]),
        Route(QUERY_PATH, _query_endpoint(observations, recorder), methods=["GET"]),
        *heron_routes(observations, recorder, questions),
        *(task_routes(observations, questions) if questions else ()),
        *action_routes(observations, actions),
        *pages.routes,
        *(Route(each.path, _endpoint(observations, each), methods=["GET"]) for each in OPERATIONS),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(AccessCheck, access=access, open_paths=pages.open_paths)],
        exception_handlers={
            HTTPException: _problem,
            HeronError: _problem,
            ClientDisconnect: _disconnected,
            Exception: _failure,
        },
    )


def _endpoint(observations: Observations, operation: Operation) -> Endpoint:
    async def answer(request: Request) -> Response:
        values = parsed(operation.parameters, request.query_params.multi_items())
        path = request.path_params
        if operation.needs_metrics:
            await wait_for_metrics(observations, path["cluster"], path["topology"])
        return _json(operation.answer(observations, path.get("cluster", ""), path.get("topology", ""), values))

    return answer


def _history_endpoint(observations: Observations, recorder: Recorder | None) -> Endpoint:
    places = asyncio.Semaphore(_HISTORIES)

    async def history(request: Request) -> Response:
        values = parsed(HISTORY_PARAMETERS, request.query_params.multi_items())
        place = request.path_params["cluster"], request.path_params["topology"]
        async with places:  # it may wait for a Prometheus
            answer = in_daemon(lambda: history_answer(observations, recorder, place, values), "history request")
            return _json(await _of_history(answer))

    return history


async def _of_history(answer: Awaitable[msgspec.Struct]) -> msgspec.Struct:
    """Wait for an answer. Without a history that can be read there is none now (503)."""
    try:
        return await answer
    except StoreError as error:
        raise NotYetKnownError(str(error)) from error


def _query_endpoint(observations: Observations, recorder: Recorder | None) -> Endpoint:
    async def query(request: Request) -> Response:
        values = parsed(QUERY_PARAMETERS, request.query_params.multi_items())
        topology = observations.topology(request.path_params["cluster"], request.path_params["topology"])
        now_s = observations.clock.monotonic_s()
        return _json(await _of_history(asyncio.to_thread(query_answer, topology, recorder, values, now_s)))

    return query


def _live_endpoint(observations: Observations, ended: asyncio.Event) -> Endpoint:
    newest: dict[tuple[str, str], tuple[int, float, bytes]] = {}
    turns = asyncio.Lock()

    def encode(topology: ObservedTopology) -> bytes:
        """The value as JSON. A hundred pages ask at the same moment, and a thousand tasks take milliseconds."""
        place, now_s = (topology.cluster, topology.name), observations.clock.monotonic_s()
        revision, made_at_s, made = newest.get(place, (-1, 0.0, b""))
        if revision == topology.revision and now_s - made_at_s < _SAME_S:
            return made
        item = topology_item(topology, now_s)
        made = msgspec.json.encode(TopologyAnswer(item, topology.status, item.age_s, item.error))
        if len(newest) >= _KEPT:
            newest.clear()
        newest[place] = topology.revision, now_s, made
        return made

    async def live(request: Request) -> Response:
        parsed((), request.query_params.multi_items())
        place = request.path_params["cluster"], request.path_params["topology"]
        observations.topology(*place)  # refuses an unknown one before the stream begins
        return LiveStream(observations, place, encode, ended, turns)

    return live


def _json(answer: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(answer), media_type=JSON)


async def _problem(_request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):  # of the router: an unknown path or another method
        return problem_response(error.status_code, str(error.detail), dict(error.headers or {}))
    return problem_response(status_of(error) if isinstance(error, HeronError) else 500, str(error))


async def _disconnected(_request: Request, _error: Exception) -> Response:
    return Response(status_code=400)  # nobody reads it, and a client that left is no failure


async def _failure(request: Request, _error: Exception) -> Response:
    _log.error("the request for %s failed", request.url.path)
    return problem_response(500, "the tracker failed; its log has the reason")
