"""Requests that are made from the OpenAPI document: every answer is one that the document declares."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote, urlencode

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heron.checkpoints.manifest import CheckpointId
from heron.ipc.documents.traces_table import TracesTable
from heron.spi.task_memory import MemoryLook
from heron_cli.client import (
    Client,
    ListedCheckpoint,
    LogLine,
    StateChange,
    TaskMemory,
    TaskProfile,
    TaskStacks,
    TaskTuples,
    TopologyStatus,
)
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
from heron_service_tracker.calls.action_items import ActionItem, ActionsAnswer
from heron_service_tracker.calls.actions import Actions
from heron_service_tracker.calls.audit_file import AuditFile
from heron_service_tracker.calls.explain_command import ExplainCommand, ExplanationAnswer
from heron_service_tracker.calls.questions import Questions
from heron_service_tracker.history.recorder import Recorder
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.http.application import application
from heron_service_tracker.paths.openapi import (
    ACTIONS_PATH,
    COMPONENT_PROFILE_PATH,
    EXPLANATION_PATH,
    HISTORY_PATH,
    LETTERS_PATH,
    LOG_FILE_PATH,
    LOG_FILES_PATH,
    LOGS_PATH,
    MEMORY_PATH,
    PROCESS_LOGS_PATH,
    PROFILE_PATH,
    QUERY_PATH,
    STACK_PATH,
    STORED_PATH,
    TRACES_PATH,
    TUPLES_PATH,
    openapi_document,
)
from heron_service_tracker.paths.operations import OPERATIONS
from heron_service_tracker.paths.problems import Problem
from heron_service_tracker.paths.query_path import QueryAnswer
from heron_service_tracker.watches.observations import Observations
from heron_testing.fake_clock import FakeClock

DOCUMENT: dict[str, Any] = json.loads(openapi_document())
TYPES: dict[tuple[str, str], type[msgspec.Struct]] = {
    **{(each.path, "get"): each.answer_type for each in OPERATIONS},
    (HISTORY_PATH, "get"): HistoryAnswer,
    (QUERY_PATH, "get"): QueryAnswer,
    (STACK_PATH, "get"): StackAnswer,
    (LOGS_PATH, "get"): LogsAnswer,
    (LOG_FILES_PATH, "get"): LogFilesAnswer,
    (EXPLANATION_PATH, "get"): ExplanationAnswer,
    (TRACES_PATH, "get"): TracesAnswer,
    (LETTERS_PATH, "get"): DeadLettersAnswer,
    (STORED_PATH, "get"): StoredCheckpointsAnswer,
    (PROCESS_LOGS_PATH, "get"): LogsAnswer,
    (ACTIONS_PATH, "get"): ActionsAnswer,
    (ACTIONS_PATH, "post"): ActionItem,
}
OBSERVING: dict[tuple[str, str], type[msgspec.Struct]] = {
    (PROFILE_PATH, "post"): ProfileAnswer,
    (COMPONENT_PROFILE_PATH, "post"): ProfileAnswer,
    (MEMORY_PATH, "post"): MemoryAnswer,
    (TUPLES_PATH, "post"): TuplesAnswer,
}
"""Paths for which the task of this test never answers; another test has their answers."""
TYPES |= OBSERVING
CALLS = sorted(TYPES)
HOSTILE = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.sampled_from(["", "0", "-1", "1e9", "9" * 400, "٣", "../..", "\x00", "<script>", "\u202e", "x" * 5000]),
)
KNOWN = {"cluster": ["near", "far"], "topology": ["words"], "task": ["1", "2"], "process": ["stmgr-1"]}
QUERIES = ["TS(count,*,execute-count)", "SUM(1,TS(lines,*,busy))", "RATE(", "PERCENTILE(99,TS(lines,*,emit-count))"]
TEXTS = [*QUERIES, "count", "lines", "emit-count", "running", "near", "hello"]


class Topology:
    """A client whose topology does whatever it is asked for at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "stmgr-1.log").write_text("{}\n", encoding="utf-8")

    def topology(self, _name: str, timeout_s: float) -> nullcontext[Topology]:
        """Return the connection, which is this object."""
        assert timeout_s > 0
        return nullcontext(self)

    def stacks(self, task_id: int) -> TaskStacks:
        """Answer."""
        return TaskStacks("words", "count", task_id, 1, 1, 12, "h1", 5.0, ())

    def profile(self, task_id: int, *, seconds: float) -> TaskProfile:
        """Answer."""
        return TaskProfile("words", "count", task_id, 1, 1, 12, "h1", 5.0, seconds, 8, (), ())

    def memory(self, task_id: int, *, seconds: float) -> TaskMemory:
        """Answer."""
        look = MemoryLook(0.0, 0.1, 100, 20, None, 40, 1, 1.0)
        return TaskMemory("words", "count", task_id, 1, 1, 12, "h1", look, look, seconds, 0, (), (), (), ())

    def tuples(self, task_id: int, *, tuples: int, seconds: float) -> TaskTuples:
        """Answer."""
        return TaskTuples("words", "count", task_id, 1, 1, 12, "h1", 5.0, seconds, tuples, (), ())

    def log_folder(self, _name: str, timeout_s: float) -> Path:
        """Answer with a folder that has no letters, and the log of a stream manager."""
        assert timeout_s > 0
        return self.folder

    def checkpoints(self, _name: str, _most: int, *, within_s: float) -> tuple[ListedCheckpoint, ...]:
        """Answer with one that is damaged."""
        assert within_s > 0
        return (ListedCheckpoint(CheckpointId("words-1", 7), None, "torn"),)

    def traces(self) -> TracesTable:
        """Answer."""
        return TracesTable()

    def logs(self, _name: str, **_options: object) -> tuple[LogLine, ...]:
        """Answer."""
        return (LogLine("count/2", "hello"),)

    def activate(self, name: str) -> StateChange:
        """Answer."""
        return StateChange(name, "words-1", "paused", "running")

    deactivate = activate

    def take_checkpoint(self, _name: str) -> CheckpointId:
        """Answer."""
        return CheckpointId("words-1", 8)

    def restart(self, _name: str, _container: int | None) -> tuple[()]:
        """Answer."""
        return ()

    def update(self, _name: str, _parallelism: dict[str, int]) -> SimpleNamespace:
        """Answer."""
        return SimpleNamespace(took_s=3.0)

    def kill(self, _name: str) -> SimpleNamespace:
        """Answer."""
        return SimpleNamespace(why="", left=())


class Explained(ExplainCommand):
    """The command, which is not installed here."""

    def answer(self, _cluster: str, _topology: str) -> ExplanationAnswer:
        """Answer."""
        return ExplanationAnswer(1.0, ("nothing suffers",))


Ask = Callable[..., httpx.Response]


@pytest.fixture
def ask(
    observations: Observations, clock: FakeClock, tmp_path: Path, make_status: Callable[..., TopologyStatus]
) -> Iterator[Ask]:
    """Asks an application that serves everything, with a minute of history."""
    recorder = Recorder(tmp_path, 8 * 2**20, clock, gap_s=30.0)
    topology = observations.topology("near", "words")
    for second in range(60):
        clock.advance(1.0)
        at_s = clock.monotonic_s()
        status = make_status(errors=(f"error {second}",))
        recorder.take(replace(topology, status=status, observed_at_s=at_s, metrics_at_s=at_s))
    recorder.flush(everything=True)
    if topology.plans is not None:
        shown = replace(topology.plans.definition, config={"topology.inspect.tuples": True})
        observations.put_plans("near", "words", replace(topology.plans, definition=shown, physical=None))
    client = cast("Client", nullcontext(Topology(tmp_path)))
    explain = Explained(lambda _profile: ())
    questions = Questions(lambda _cluster: client, logs_allowed=True, tuples_allowed=True, explain=explain)
    actions = Actions(lambda _cluster: client, AuditFile(tmp_path / "audit.jsonl"), clock)
    access = Access(Address("127.0.0.1", 8888))
    app = application(observations, access, asyncio.Event(), recorder, questions, actions=actions)

    def once(method: str, url: str, **options: Any) -> httpx.Response:  # noqa: ANN401
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8888") as sender:
                return await sender.request(method, url, **options)

        return asyncio.run(send())

    yield once
    recorder.file.close()


def values_of(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    """Values that the schema of a parameter allows, and others."""
    if schema["type"] == "array":
        return values_of(schema["items"])
    if schema["type"] == "string":
        return st.one_of(st.sampled_from(TEXTS), HOSTILE)
    least, most = schema.get("minimum", 0), schema.get("maximum", 10**12)
    return st.one_of(
        st.integers(int(least), int(most)).map(str), st.sampled_from([str(least - 1), "1.5", "1e3"]), HOSTILE
    )


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, str, dict[str, Any]]:
    """A path of the document, its method, a URL, and the options of the request."""
    path, method = draw(st.sampled_from(CALLS))
    operation = DOCUMENT["paths"][path][method]
    url, query = path, []
    for each in operation["parameters"]:
        name = each["name"]
        if each["in"] == "path":
            value = draw(st.one_of(st.sampled_from(KNOWN[name]), st.sampled_from(KNOWN[name]), HOSTILE))
            url = url.replace(f"{{{name}}}", quote(value, safe=""))
        elif each["required"] or draw(st.booleans()):
            query.append((name, draw(values_of(each["schema"]))))
    if draw(st.integers(0, 4)) == 0:
        query.append((draw(HOSTILE), draw(HOSTILE)))
    options: dict[str, Any] = {}
    if method == "post":
        body = st.dictionaries(
            st.sampled_from(["action", "confirm", "container", "parallelism", "x"]),
            st.one_of(
                st.sampled_from(["activate", "checkpoint", "restart", "update", "kill", "words"]),
                st.none(),
                st.integers(),
                st.dictionaries(st.text(max_size=5), st.integers(-5, 10**6), max_size=2),
            ),
        )
        options["content"] = draw(st.one_of(body.map(json.dumps), st.binary(max_size=20)))
        options["headers"] = {"content-type": draw(st.sampled_from(["application/json", "text/plain", ""]))}
    return path, method, f"{url}?{urlencode(query)}", options


@settings(
    deadline=None, max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(request=requests())
def test_every_answer_is_one_that_the_document_declares(
    ask: Ask, request: tuple[str, str, str, dict[str, Any]]
) -> None:
    """Its status, its media type and its schema; no request makes the tracker fail."""
    path, method, url, options = request
    response = ask(method, url, **options)
    declared = DOCUMENT["paths"][path][method]["responses"]
    status = str(response.status_code)
    assert status in declared, response.text
    assert response.headers["content-type"] in declared[status]["content"]
    expected = TYPES[path, method] if response.is_success else Problem
    msgspec.json.decode(response.content, type=expected, strict=True)


def test_the_document_has_a_type_for_every_path_that_answers_once() -> None:
    """A path that is added is tried, too."""
    streams = {path for path in DOCUMENT["paths"] if path.endswith("/live")} | {LOG_FILE_PATH}
    listed = {(path, method) for path, found in DOCUMENT["paths"].items() for method in found if path not in streams}
    assert listed == set(TYPES)


@pytest.mark.parametrize(("path", "method"), sorted(TYPES.keys() - OBSERVING.keys()))
def test_every_path_answers_a_request_that_is_well_formed(ask: Ask, path: str, method: str) -> None:
    """Else the requests of the other test might all be refused."""
    url = path.format(cluster="near", topology="words", task="2", process="stmgr-1")
    if path == QUERY_PATH:
        url += "?query=TS(lines,*,emit-count)&start=0&end=60"
    options = {"json": {"action": "activate", "confirm": "words"}} if method == "post" else {}
    response = ask(method, url, **options)
    assert response.is_success, response.text
    msgspec.json.decode(response.content, type=TYPES[path, method])
