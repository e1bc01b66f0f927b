"""The paths for which a request waits: they ask a task, a store or files. Everything else is in memory."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from heron.errors import AccessError, HeronError, UsageError
from heron_service_tracker.answers.answer_parts import components_with_tuples
from heron_service_tracker.calls.questions import Questions
from heron_service_tracker.paths.openapi import (
    COMPONENT_PROFILE_PARAMETERS,
    COMPONENT_PROFILE_PATH,
    EXPLANATION_PATH,
    LETTERS_PARAMETERS,
    LETTERS_PATH,
    LOG_FILE_PATH,
    LOG_FILES_PARAMETERS,
    LOG_FILES_PATH,
    LOGS_PARAMETERS,
    LOGS_PATH,
    MEMORY_PARAMETERS,
    MEMORY_PATH,
    PROCESS_LOGS_PATH,
    PROFILE_PARAMETERS,
    PROFILE_PATH,
    STACK_PATH,
    STORED_PARAMETERS,
    STORED_PATH,
    TRACES_PARAMETERS,
    TRACES_PATH,
    TUPLES_PARAMETERS,
    TUPLES_PATH,
)
from heron_service_tracker.paths.operations import check_component
from heron_service_tracker.paths.parameters import Parameter, Values, parsed
from heron_service_tracker.request_errors import BusyError, NotYetKnownError, RefusedByOperatorError, UnknownPlaceError
from heron_service_tracker.watches.observations import Observations

__all__ = ["task_routes"]

_TASK = re.compile(r"[1-9][0-9]{0,9}")  # one path for each task, so without zeros before it

T = TypeVar("T")

Ask = Callable[[str, str, int, Values], Awaitable[msgspec.Struct]]
Endpoint = Callable[[Request], Awaitable[Response]]


def task_routes(observations: Observations, questions: Questions) -> list[Route]:
    """The routes of the application."""
    observers = questions.observers

    async def stack(cluster: str, topology: str, task_id: int, _values: Values) -> msgspec.Struct:
        return await questions.stack(cluster, topology, task_id)

    async def logs(cluster: str, topology: str, task_id: int, values: Values) -> msgspec.Struct:
        _check_logs(questions, f"heron logs {topology} --task {task_id}")
        return await questions.logs(cluster, topology, task_id, values.integer("lines"), values.text("search"))

    async def profile(cluster: str, topology: str, task_id: int, values: Values) -> msgspec.Struct:
        return await observers.profile(cluster, topology, task_id, values.number("seconds"))

    async def memory(cluster: str, topology: str, task_id: int, values: Values) -> msgspec.Struct:
        return await observers.memory(cluster, topology, task_id, values.number("seconds"))

    async def tuples(cluster: str, topology: str, task_id: int, values: Values) -> msgspec.Struct:
        command = f"heron inspect {topology} {task_id}"
        if not observers.tuples_allowed:
            msg = f"this tracker shows no tuples; start it with --tuples, or `{command}`"
            raise RefusedByOperatorError(msg)
        found = observations.topology(cluster, topology)
        tasks = found.status.tasks if found.status else ()
        component = next((each.component for each in tasks if each.task_id == task_id), "")
        if component not in components_with_tuples(found.plans):
            msg = f"topology.inspect.tuples of component {component!r} is false; `{command}` says how to allow it"
            raise RefusedByOperatorError(msg)
        return await observers.tuples(cluster, topology, task_id, values.integer("tuples"), values.number("seconds"))

    return [
        Route(PROFILE_PATH, _endpoint(observations, profile, PROFILE_PARAMETERS), methods=["POST"]),
        Route(MEMORY_PATH, _endpoint(observations, memory, MEMORY_PARAMETERS), methods=["POST"]),
        Route(TUPLES_PATH, _endpoint(observations, tuples, TUPLES_PARAMETERS), methods=["POST"]),
        *_topology_routes(observations, questions),
        *_log_routes(observations, questions),
        Route(STACK_PATH, _endpoint(observations, stack, ()), methods=["GET"]),
        Route(LOGS_PATH, _endpoint(observations, logs, LOGS_PARAMETERS), methods=["GET"]),
    ]


def _topology_routes(observations: Observations, questions: Questions) -> list[Route]:
    async def explanation(request: Request) -> Response:
        parsed((), request.query_params.multi_items())
        cluster, topology = _known(observations, request)
        answer = await questions.explanation(cluster, topology)
        return Response(msgspec.json.encode(answer), media_type="application/json")

    async def profile(request: Request) -> Response:
        values = parsed(COMPONENT_PROFILE_PARAMETERS, request.query_params.multi_items())
        cluster, topology = request.path_params["cluster"], request.path_params["topology"]
        found, component = observations.topology(cluster, topology), values.text("component")
        check_component(found, component)
        tasks = [each.task_id for each in (found.status.tasks if found.status else ()) if each.component == component]
        if not tasks:
            msg = f"no task of component {component!r} of topology {topology!r} is known yet"
            raise NotYetKnownError(msg)
        seconds = values.number("seconds")
        return await _answered(questions.observers.component_profile(cluster, topology, tasks, seconds))

    async def traces(request: Request) -> Response:
        values = parsed(TRACES_PARAMETERS, request.query_params.multi_items())
        cluster, topology = _known(observations, request)
        return await _answered(questions.traces(cluster, topology, values.integer("limit")))

    async def letters(request: Request) -> Response:
        values = parsed(LETTERS_PARAMETERS, request.query_params.multi_items())
        cluster, topology = request.path_params["cluster"], request.path_params["topology"]
        plans = observations.topology(cluster, topology).plans
        shown = components_with_tuples(plans) if questions.observers.tuples_allowed else ()
        return await _answered(questions.letters(cluster, topology, values.integer("limit"), shown))

    async def stored(request: Request) -> Response:
        values = parsed(STORED_PARAMETERS, request.query_params.multi_items())
        cluster, topology = _known(observations, request)
        return await _answered(questions.stored_checkpoints(cluster, topology, values.text("tasks_of")))

    return [
        Route(COMPONENT_PROFILE_PATH, profile, methods=["POST"]),
        Route(STORED_PATH, stored, methods=["GET"]),
        Route(LETTERS_PATH, letters, methods=["GET"]),
        Route(EXPLANATION_PATH, explanation, methods=["GET"]),
        Route(TRACES_PATH, traces, methods=["GET"]),
    ]


def _log_routes(observations: Observations, questions: Questions) -> list[Route]:
    def known(request: Request) -> tuple[str, str]:
        cluster, topology = _known(observations, request)
        _check_logs(questions, f"heron logs {topology}")
        return cluster, topology

    async def logs(request: Request) -> Response:
        values = parsed(LOGS_PARAMETERS, request.query_params.multi_items())
        cluster, topology = known(request)
        process, lines, search = request.path_params["process"], values.integer("lines"), values.text("search")
        return await _answered(questions.logs(cluster, topology, process, lines, search))

    async def log_files(request: Request) -> Response:
        values = parsed(LOG_FILES_PARAMETERS, request.query_params.multi_items())
        cluster, topology = known(request)
        return await _answered(questions.log_files(cluster, topology, values.integer("task"), values.text("process")))

    async def log_file(request: Request) -> Response:
        parsed((), request.query_params.multi_items())
        cluster, topology = known(request)
        found = await _asked(questions.log_file(cluster, topology, request.path_params["file"]))
        name = quote(f"{topology}-{found.name}", safe="")
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{name}"}
        return StreamingResponse(found.chunks(), media_type="text/plain", headers=headers)

    return [
        Route(PROCESS_LOGS_PATH, logs, methods=["GET"]),
        Route(LOG_FILES_PATH, log_files, methods=["GET"]),
        Route(LOG_FILE_PATH, log_file, methods=["GET"]),
    ]


def _known(observations: Observations, request: Request) -> tuple[str, str]:
    cluster, topology = request.path_params["cluster"], request.path_params["topology"]
    observations.topology(cluster, topology)  # refuses an unknown one
    return cluster, topology


def _check_logs(questions: Questions, command: str) -> None:
    if not questions.logs_allowed:
        msg = f"this server shows no logs, which `heron tracker --logs` and `heron ui --logs` do; `{command}`"
        raise RefusedByOperatorError(msg)


def _endpoint(observations: Observations, ask: Ask, parameters: tuple[Parameter, ...]) -> Endpoint:
    async def answer(request: Request) -> Response:
        values = parsed(parameters, request.query_params.multi_items())
        cluster, topology = request.path_params["cluster"], request.path_params["topology"]
        task_id = _task_of(request.path_params["task"])
        found = observations.topology(cluster, topology)
        if found.status and all(each.task_id != task_id for each in found.status.tasks):
            msg = f"topology {topology!r} has no task {task_id}"
            raise UnknownPlaceError(msg)
        return await _answered(ask(cluster, topology, task_id, values))

    return answer


async def _answered(question: Awaitable[msgspec.Struct]) -> Response:
    return Response(msgspec.json.encode(await _asked(question)), media_type="application/json")


async def _asked(question: Awaitable[T]) -> T:
    try:
        return await question
    except (UnknownPlaceError, BusyError, RefusedByOperatorError, AccessError):
        raise
    except UsageError as error:  # it has ended, or has no logs here
        raise UnknownPlaceError(str(error)) from error
    except HeronError as error:
        raise NotYetKnownError(str(error)) from error


def _task_of(text: str) -> int:
    if _TASK.fullmatch(text):
        return int(text)
    msg = f"{text[:50]!r} is not the number of a task"
    raise UnknownPlaceError(msg)
