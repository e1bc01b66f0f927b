"""The OpenAPI document, made from the table of operations and the types of their answers."""

from __future__ import annotations

import re

import msgspec

from heron.driver_kit.core_version import core_version
from heron_service_tracker.answers.answers import HistoryAnswer
from heron_service_tracker.answers.checkpoint_answers import StoredCheckpointsAnswer
from heron_service_tracker.answers.flow_answers import (
    LogFilesAnswer,
    LogsAnswer,
    MemoryAnswer,
    ProfileAnswer,
    StackAnswer,
    TuplesAnswer,
)
from heron_service_tracker.answers.letters_answer import DeadLettersAnswer
from heron_service_tracker.answers.traces_answer import TracesAnswer
from heron_service_tracker.calls.action_items import ActionItem, ActionRequest, ActionsAnswer
from heron_service_tracker.calls.explain_command import ExplanationAnswer
from heron_service_tracker.paths.history_path import HISTORY_PARAMETERS
from heron_service_tracker.paths.operations import API, OPERATIONS
from heron_service_tracker.paths.parameters import Parameter
from heron_service_tracker.paths.problems import PROBLEM_TYPE, Problem
from heron_service_tracker.paths.query_path import QUERY_PARAMETERS, QueryAnswer

__all__ = [
    "ACTIONS_PATH",
    "COMPONENT_PROFILE_PARAMETERS",
    "COMPONENT_PROFILE_PATH",
    "EXPLANATION_PATH",
    "HISTORY_PATH",
    "LETTERS_PARAMETERS",
    "LETTERS_PATH",
    "LOGS_PARAMETERS",
    "LOGS_PATH",
    "LOG_FILES_PARAMETERS",
    "LOG_FILES_PATH",
    "LOG_FILE_PATH",
    "MEMORY_PARAMETERS",
    "MEMORY_PATH",
    "PROCESS_LOGS_PATH",
    "PROFILE_PARAMETERS",
    "PROFILE_PATH",
    "QUERY_PATH",
    "STACK_PATH",
    "STORED_PARAMETERS",
    "STORED_PATH",
    "TRACES_PARAMETERS",
    "TRACES_PATH",
    "TUPLES_PARAMETERS",
    "TUPLES_PATH",
    "openapi_document",
]

_REFERENCES = "#/components/schemas/{name}"
_LIVE = f"{API}/clusters/{{cluster}}/topologies/{{topology}}/live"
HISTORY_PATH = f"{API}/clusters/{{cluster}}/topologies/{{topology}}/history"
_TASK = f"{API}/clusters/{{cluster}}/topologies/{{topology}}/tasks/{{task}}"
STACK_PATH = f"{_TASK}/stack"
PROFILE_PATH = f"{_TASK}/profile"
COMPONENT_PROFILE_PATH = f"{API}/clusters/{{cluster}}/topologies/{{topology}}/profile"
MEMORY_PATH = f"{_TASK}/memory"
TUPLES_PATH = f"{_TASK}/tuples"
LOGS_PATH = f"{_TASK}/logs"
PROCESS_LOGS_PATH = f"{API}/clusters/{{cluster}}/topologies/{{topology}}/processes/{{process}}/logs"
LOG_FILES_PATH = f"{API}/clusters/{{cluster}}/topologies/{{topology}}/log-files"
LOG_FILE_PATH = f"{LOG_FILES_PATH}/{{file}}"
LOG_FILES_PARAMETERS = (
    Parameter("task", "only those of this task", "integer", None, 1, 10**9),
    Parameter("process", "only those of this process, such as stmgr-1"),
)
QUERY_PATH = f"{API}/clusters/{{cluster}}/topologies/{{topology}}/query"
TRACES_PATH = f"{API}/clusters/{{cluster}}/topologies/{{topology}}/traces"
LETTERS_PATH = f"{API}/clusters/{{cluster}}/topologies/{{topology}}/dead-letters"
STORED_PATH = f"{API}/clusters/{{cluster}}/topologies/{{topology}}/stored-checkpoints"
STORED_PARAMETERS = (Parameter("tasks_of", "the checkpoint whose tasks are shown, RUN/NUMBER; else the newest one"),)
LETTERS_PARAMETERS = (Parameter("limit", "the greatest number of letters", "integer", 20, 1, 100),)
TRACES_PARAMETERS = (Parameter("limit", "the greatest number of traces", "integer", 10, 1, 100),)
EXPLANATION_PATH = f"{API}/clusters/{{cluster}}/topologies/{{topology}}/explanation"
ACTIONS_PATH = f"{API}/clusters/{{cluster}}/topologies/{{topology}}/actions"
LOGS_PARAMETERS = (
    Parameter("lines", "the greatest number of lines of each file", "integer", 200, 1, 2000),
    Parameter("search", "only lines that contain this text, in any case"),
)
_LONGEST_S = 60
PROFILE_PARAMETERS = (Parameter("seconds", "how long the task is sampled", "integer", 10, 1, _LONGEST_S),)
COMPONENT_PROFILE_PARAMETERS = (
    Parameter("component", "the component whose tasks are sampled", required=True),
    *PROFILE_PARAMETERS,
)
MEMORY_PARAMETERS = (Parameter("seconds", "the time between two looks; 0: one look", "integer", 5, 0, _LONGEST_S),)
TUPLES_PARAMETERS = (
    Parameter("tuples", "the greatest number of tuples of each direction", "integer", 10, 1, 100),
    Parameter("seconds", "the longest wait for them", "integer", 10, 1, _LONGEST_S),
)
_OTHERS: tuple[type[msgspec.Struct], ...] = (
    HistoryAnswer,
    QueryAnswer,
    StackAnswer,
    ProfileAnswer,
    MemoryAnswer,
    TuplesAnswer,
    LogsAnswer,
    LogFilesAnswer,
    ExplanationAnswer,
    TracesAnswer,
    DeadLettersAnswer,
    StoredCheckpointsAnswer,
    ActionsAnswer,
    ActionItem,
    ActionRequest,
    Problem,
)
_PROBLEMS = {"400": "malformed query", "401": "a token is needed", "403": "refused", "404": "not found"}


def openapi_document() -> bytes:
    """The document of all operations as JSON."""
    types = [*dict.fromkeys(each.answer_type for each in OPERATIONS), *_OTHERS]
    schemas, definitions = msgspec.json.schema_components(types, ref_template=_REFERENCES)
    by_type = dict(zip(types, schemas, strict=True))
    found = {
        each.path: _path(each.path, each.summary, each.parameters, by_type[each.answer_type]) for each in OPERATIONS
    }
    found[HISTORY_PATH] = _path(HISTORY_PATH, "Shows values by time", HISTORY_PARAMETERS, by_type[HistoryAnswer])
    found[QUERY_PATH] = _path(QUERY_PATH, "Evaluates a query over the history", QUERY_PARAMETERS, by_type[QueryAnswer])
    found[STACK_PATH] = _path(STACK_PATH, "Shows the threads of a task, as it answers", (), by_type[StackAnswer])
    found[LOGS_PATH] = _path(LOGS_PATH, "Shows the end of a task's logs", LOGS_PARAMETERS, by_type[LogsAnswer])
    summary = "Shows the end of the logs of a process of the engine, or of a task"
    found[PROCESS_LOGS_PATH] = _path(PROCESS_LOGS_PATH, summary, LOGS_PARAMETERS, by_type[LogsAnswer])
    found[LOG_FILES_PATH] = _path(
        LOG_FILES_PATH, "Lists the logs of this machine", LOG_FILES_PARAMETERS, by_type[LogFilesAnswer]
    )
    found[LOG_FILE_PATH] = _log_file()
    found[PROFILE_PATH] = _observed(
        PROFILE_PATH, "Samples where a task spends its time", PROFILE_PARAMETERS, by_type[ProfileAnswer]
    )
    found[COMPONENT_PROFILE_PATH] = _observed(
        COMPONENT_PROFILE_PATH,
        "Samples where the tasks of a component spend their time, summed up",
        COMPONENT_PROFILE_PARAMETERS,
        by_type[ProfileAnswer],
    )
    found[MEMORY_PATH] = _observed(
        MEMORY_PATH, "Observes the memory of a task", MEMORY_PARAMETERS, by_type[MemoryAnswer]
    )
    found[TUPLES_PATH] = _observed(
        TUPLES_PATH, "Shows the next tuples of a task; only with --tuples", TUPLES_PARAMETERS, by_type[TuplesAnswer]
    )
    explained = "Says what suffers, and why, after some seconds"
    found[EXPLANATION_PATH] = _shared(EXPLANATION_PATH, explained, (), by_type[ExplanationAnswer])
    traced = "Shows where the time of traced tuples goes"
    found[TRACES_PATH] = _shared(TRACES_PATH, traced, TRACES_PARAMETERS, by_type[TracesAnswer])
    letters = "Shows the newest dead letters; their values only with --tuples"
    found[LETTERS_PATH] = _shared(LETTERS_PATH, letters, LETTERS_PARAMETERS, by_type[DeadLettersAnswer])
    stored = "Lists the newest checkpoints in the store, with the tasks of one of them"
    found[STORED_PATH] = _shared(STORED_PATH, stored, STORED_PARAMETERS, by_type[StoredCheckpointsAnswer])
    found[_LIVE] = _live()
    listed = _path(ACTIONS_PATH, "Lists the newest actions", (), by_type[ActionsAnswer])
    found[ACTIONS_PATH] = {**listed, "post": _begun(by_type[ActionRequest], by_type[ActionItem])}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Heron tracker", "version": core_version()},
        "paths": found,
        "components": {
            "schemas": definitions,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }
    return msgspec.json.encode(document)


def _path(path: str, summary: str, parameters: tuple[Parameter, ...], schema: dict[str, object]) -> dict[str, object]:
    answer = {"description": summary, "content": {"application/json": {"schema": schema}}}
    described = [*_in_path(path), *map(_in_query, parameters)]
    responses = {"200": answer, **_problems(), "503": _problem("not known yet")}
    return {"get": {"summary": summary, "parameters": described, "responses": responses}}


def _shared(path: str, summary: str, parameters: tuple[Parameter, ...], schema: dict[str, object]) -> dict[str, object]:
    """Requests share an answer that costs something; other topologies may be asked first."""
    described = _path(path, summary, parameters, schema)
    described["get"]["responses"]["409"] = _problem("busy")  # type: ignore[index]  # see `_path`
    return described


def _observed(
    path: str, summary: str, parameters: tuple[Parameter, ...], schema: dict[str, object]
) -> dict[str, object]:
    """An observation costs its task, so it is no GET, which any page of another site can send."""
    return {"post": _shared(path, summary, parameters, schema)["get"]}


def _live() -> dict[str, object]:
    answer = {
        "description": "Server-sent events: `topology`, each with the answer that the topology's own path gives",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
    responses = {"200": answer, **_problems()}
    return {"get": {"summary": "Streams live values", "parameters": _in_path(_LIVE), "responses": responses}}


def _log_file() -> dict[str, object]:
    found = _path(LOG_FILE_PATH, "Sends a log with its older parts, as an attachment", (), {"type": "string"})
    found["get"]["responses"]["200"]["content"] = {"text/plain": {"schema": {"type": "string"}}}  # type: ignore[index]
    return found


def _begun(request: dict[str, object], item: dict[str, object]) -> dict[str, object]:
    """The operation that begins an action."""
    refusals = {"409": "busy", "413": "too long", "415": "not JSON"}
    return {
        "summary": "Begins an action; only with --allow-actions",
        "parameters": _in_path(ACTIONS_PATH),
        "requestBody": {"required": True, "content": {"application/json": {"schema": request}}},
        "responses": {
            "202": {"description": "It has begun", "content": {"application/json": {"schema": item}}},
            **_problems(),
            **{status: _problem(title) for status, title in refusals.items()},
        },
    }


def _in_path(path: str) -> list[dict[str, object]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _in_query(parameter: Parameter) -> dict[str, object]:
    schema = parameter.schema()
    if parameter.many:
        schema = {"type": "array", "items": schema}
    return {
        "name": parameter.name,
        "in": "query",
        "description": parameter.meaning,
        "required": parameter.required,
        "schema": schema,
    }


def _problems() -> dict[str, object]:
    return {status: _problem(title) for status, title in _PROBLEMS.items()}


def _problem(title: str) -> dict[str, object]:
    schema = {"$ref": _REFERENCES.format(name="Problem")}
    return {"description": title, "content": {PROBLEM_TYPE: {"schema": schema}}}
