"""The actions on topologies: what is refused, what is done, and what the audit file has."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from click.testing import CliRunner
from starlette.routing import Route

from heron.checkpoints.manifest import CheckpointId
from heron.errors import HeronError, UnreachableError, UsageError
from heron_cli.client import Client, RestartedContainer, StateChange
from heron_service_tracker.calls import actions as actions_module
from heron_service_tracker.calls.action_items import ActionRequest
from heron_service_tracker.calls.actions import Actions
from heron_service_tracker.calls.audit_file import AuditFile
from heron_service_tracker.calls.questions import Questions
from heron_service_tracker.command import tracker
from heron_service_tracker.history.history_file import SeriesPoints
from heron_service_tracker.history.prometheus_history import PrometheusHistory
from heron_service_tracker.history.recorder import Recorder
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.http.application import application
from heron_service_tracker.paths.openapi import ACTIONS_PATH
from heron_service_tracker.watches.observations import Observations
from heron_testing.fake_clock import FakeClock
from heron_testing.waiting import wait_until

ACTIONS = "/api/v1/clusters/near/topologies/words/actions"
TOKEN = "a-token-of-the-tests"
CONFIRMED = {"confirm": "words"}


class Changing:
    """A client that records what it is asked for, waits while `held`, and fails with `error` where that is set."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []
        self.before = "running"
        self.error: HeronError | None = None
        self.held = threading.Event()
        self.held.set()

    def _ask(self, *words: object) -> None:
        self.asked.append(words)
        assert self.held.wait(20.0)
        if self.error:
            raise self.error

    def activate(self, name: str) -> StateChange:
        """Answer."""
        self._ask("activate", name)
        return StateChange(name, "words-1", "paused", "running")

    def deactivate(self, name: str) -> StateChange:
        """Answer."""
        self._ask("deactivate", name)
        return StateChange(name, "words-1", self.before, "paused")

    def take_checkpoint(self, name: str) -> CheckpointId:
        """Answer."""
        self._ask("checkpoint", name)
        return CheckpointId("words-1", 7)

    def restart(self, name: str, container: int | None) -> tuple[RestartedContainer, ...]:
        """Answer."""
        self._ask("restart", name, container)
        return (RestartedContainer(container or 1, 2.5),)

    def update(self, name: str, parallelism: dict[str, int]) -> SimpleNamespace:
        """Answer."""
        self._ask("update", name, parallelism)
        return SimpleNamespace(took_s=3.0)

    def kill(self, name: str) -> SimpleNamespace:
        """Answer."""
        self._ask("kill", name)
        return SimpleNamespace(why="", left=())


@pytest.fixture
def client() -> Iterator[Changing]:
    """The client that changes topologies; at the end nothing waits."""
    made = Changing()
    yield made
    made.held.set()


@pytest.fixture
def actions(client: Changing, tmp_path: Path, clock: FakeClock) -> Actions:
    """The actions, with an audit file."""
    return Actions(lambda _: cast("Client", nullcontext(client)), AuditFile(tmp_path / "audit" / "a.jsonl"), clock)


Send = Callable[..., httpx.Response]


@pytest.fixture
def send(observations: Observations, actions: Actions) -> Send:
    """Sends one request; a document is the body of a POST."""

    def once(document: object = None, path: str = ACTIONS, **options: Any) -> httpx.Response:  # noqa: ANN401
        async def ask() -> httpx.Response:
            access = Access(Address("127.0.0.1", 1), TOKEN)
            app = application(observations, access, asyncio.Event(), actions=actions)
            headers = {"authorization": f"Bearer {TOKEN}", **options.pop("headers", {})}
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as sender:
                if document is not None:
                    options["json"] = document
                return await sender.request("POST" if options else "GET", path, headers=headers, **options)

        return asyncio.run(ask())

    return once


def ended(actions: Actions) -> None:
    """Wait until no action is under way."""
    wait_until(lambda: actions.items("near", "words")[0].state != "running", 20.0, "the action ends")


@pytest.mark.parametrize(
    ("request_", "asked", "text"),
    [
        ({"action": "activate"}, ("activate", "words"), "it was paused, and is running"),
        ({"action": "deactivate"}, ("deactivate", "words"), "it was running, and is paused"),
        ({"action": "checkpoint"}, ("checkpoint", "words"), "checkpoint words-1/7 is complete"),
        ({"action": "restart", "container": 2}, ("restart", "words", 2), "container 2 runs again after 2.5 s"),
        ({"action": "restart"}, ("restart", "words", None), "container 1 runs again after 2.5 s"),
        (
            {"action": "update", "parallelism": {"count": 4}},
            ("update", "words", {"count": 4}),
            "it was complete after 3.0 s",
        ),
        ({"action": "kill"}, ("kill", "words"), "it has ended"),
    ],
)
def test_an_action_is_done_listed_and_audited(
    send: Send,
    actions: Actions,
    client: Changing,
    tmp_path: Path,
    request_: dict[str, object],
    asked: tuple[object, ...],
    text: str,
) -> None:
    """The audit file has its beginning and its end, and nobody else can read it."""
    begun = send({**request_, **CONFIRMED})
    assert (begun.status_code, begun.json()["state"]) == (202, "running")
    ended(actions)
    assert client.asked == [asked]
    (item,) = send().json()["items"]
    assert (item["action"], item["state"], item["text"]) == (request_["action"], "done", text)
    audit = tmp_path / "audit" / "a.jsonl"
    wait_until(lambda: audit.read_text(encoding="utf-8").count("\n") == 2, 20.0, "the end is audited")
    lines = [json.loads(line) for line in audit.read_text(encoding="utf-8").splitlines()]
    assert [(each["cluster"], each["topology"], each["state"]) for each in lines] == [
        ("near", "words", "running"),
        ("near", "words", "done"),
    ]
    assert audit.stat().st_mode & 0o777 == 0o600


def test_a_repeated_action_says_that_nothing_changed(send: Send, actions: Actions, client: Changing) -> None:
    """The first request may have had no answer; a second one must not look like a change."""
    client.before = "paused"
    send({"action": "deactivate", **CONFIRMED})
    ended(actions)
    assert actions.items("near", "words")[0].text == "it was paused already"


def test_a_wrong_method_is_told_all_methods_of_the_path(observations: Observations, actions: Actions) -> None:
    """Two routes of one path would name the methods of the first alone. PATCH is of no path."""
    questions = Questions(lambda _: pytest.fail("nothing asks"), tuples_allowed=True, logs_allowed=True)
    app = application(observations, Access(Address("127.0.0.1", 1)), asyncio.Event(), None, questions, actions=actions)
    by_path: dict[str, set[str]] = {}
    for route in app.routes:
        if isinstance(route, Route):
            by_path.setdefault(route.path, set()).update(route.methods or ())

    names = dict.fromkeys(("cluster", "topology", "name", "process", "file"), "x")

    async def allowed(path: str, method: str) -> set[str]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
            answer = await client.request(method, path.format(**names, task=2))
        assert answer.status_code == 405
        return set(answer.headers["allow"].split(", "))

    assert by_path[ACTIONS_PATH] == {"GET", "HEAD", "POST"}
    for path, methods in by_path.items():
        assert asyncio.run(allowed(path, "PATCH")) == methods, path
    assert asyncio.run(allowed(ACTIONS, "OPTIONS")) == asyncio.run(allowed(ACTIONS, "PUT")) == by_path[ACTIONS_PATH]


def test_a_failure_is_told(send: Send, actions: Actions, client: Changing) -> None:
    """The page shows why, as the command would."""
    client.error = UnreachableError("topology 'words' does not answer")
    assert send({"action": "kill", **CONFIRMED}).status_code == 202
    ended(actions)
    (item,) = send().json()["items"]
    assert (item["state"], item["text"]) == ("failed", "topology 'words' does not answer")


def test_one_action_at_a_time(send: Send, actions: Actions, client: Changing) -> None:
    """A second click must not kill a topology twice."""
    client.held.clear()
    assert send({"action": "restart", **CONFIRMED}).status_code == 202
    refused = send({"action": "kill", **CONFIRMED})
    assert (refused.status_code, "restart is under way" in refused.json()["detail"]) == (409, True)
    client.held.set()
    ended(actions)
    assert [each[0] for each in client.asked] == ["restart"]


@pytest.mark.parametrize(
    ("document", "detail"),
    [
        ({"action": "kill", "confirm": "word"}, "repeat the name of the topology, 'words'"),
        ({"action": "kill"}, "missing required field `confirm`"),
        ({"action": "burn", **CONFIRMED}, "the request is not an action"),
        ({"action": "kill", "force": True, **CONFIRMED}, "unknown field `force`"),
        ({"action": "kill", "container": 1, **CONFIRMED}, "only `restart` takes a container"),
        ({"action": "restart", "container": -1, **CONFIRMED}, "only `restart` takes a container, from 0"),
        ({"action": "update", **CONFIRMED}, "`update` takes the numbers of tasks"),
        ({"action": "update", "parallelism": {"count": 0}, **CONFIRMED}, "0 is not a number of tasks from 1"),
        ([], "the request is not an action"),
    ],
)
def test_a_request_that_cannot_be_meant_changes_nothing(
    send: Send, client: Changing, document: object, detail: str
) -> None:
    """Each says what is wrong."""
    answer = send(document)
    assert (answer.status_code, detail in answer.json()["detail"]) == (400, True), answer.text
    assert client.asked == []


def test_bodies_that_are_no_json_or_too_long_are_refused(send: Send, client: Changing) -> None:
    """A form of another site is no JSON, and memory is bounded."""
    body = json.dumps({"action": "kill", **CONFIRMED}).encode()
    assert send(content=body, headers={"content-type": "text/plain"}).status_code == 415
    assert send(content=body).status_code == 415
    assert send(content=b"\xff", headers={"content-type": "application/json"}).status_code == 400
    assert send(content=b" " * 70_000, headers={"content-type": "application/json"}).status_code == 413
    assert client.asked == []


def test_neither_other_sites_nor_people_without_the_token_act(send: Send, client: Changing) -> None:
    """The checks of all paths hold here, too."""
    kill = {"action": "kill", **CONFIRMED}
    assert send(kill, headers={"origin": "http://evil.example"}).status_code == 403
    assert send(kill, headers={"authorization": "Bearer other"}).status_code == 401
    assert send(kill, path=ACTIONS.replace("words", "other")).status_code == 404
    assert send(kill, path=f"{ACTIONS}?x=1").status_code == 400
    assert client.asked == []


def test_what_cannot_be_audited_is_not_done(send: Send, client: Changing, tmp_path: Path) -> None:
    """The operator relies on the file."""
    (tmp_path / "audit").write_text("a file is in its place", encoding="utf-8")
    answer = send({"action": "kill", **CONFIRMED})
    assert (answer.status_code, "the audit file" in answer.json()["detail"]) == (500, True)
    assert client.asked == []


def test_without_the_option_the_path_says_what_allows_actions(observations: Observations) -> None:
    """A tracker changes nothing unless its operator says so, and an operator must not have to guess the option."""

    async def ask() -> httpx.Response:
        app = application(observations, Access(Address("127.0.0.1", 1)), asyncio.Event())
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
            return await client.post(ACTIONS, json={"action": "kill", **CONFIRMED})

    refused = asyncio.run(ask())
    assert refused.status_code == 403
    assert "--allow-actions and --token-file FILE" in refused.json()["detail"]


def test_no_other_path_changes_a_topology(observations: Observations, actions: Actions) -> None:
    """The other paths that take a body ask a task with the read-only key."""
    questions = Questions(lambda _: pytest.fail("nothing asks"), tuples_allowed=True, logs_allowed=True)
    access = Access(Address("127.0.0.1", 1))
    app = application(observations, access, asyncio.Event(), questions=questions, actions=actions)
    changing = {each.path for each in app.routes if isinstance(each, Route) and each.methods and "POST" in each.methods}
    task = ACTIONS.replace("near", "{cluster}").replace("words/actions", "{topology}/tasks/{task}")
    asking = {f"{task}/profile", f"{task}/memory", f"{task}/tuples", task.replace("tasks/{task}", "profile")}
    assert changing - asking == {ACTIONS.replace("near", "{cluster}").replace("words", "{topology}")}
    others = {method for each in app.routes if isinstance(each, Route) for method in each.methods or ()}
    assert others == {"GET", "HEAD", "POST"}


def test_actions_need_a_token_also_at_a_loopback_address() -> None:
    """Every user of the machine reaches it."""
    result = CliRunner().invoke(tracker, ["--allow-actions"])
    assert isinstance(result.exception, UsageError)
    assert "--allow-actions needs --token-file or --token-env" in str(result.exception)


def test_actions_on_many_topologies_are_forgotten_the_oldest_first(
    actions: Actions, client: Changing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of topologies may change with every run. An action that runs is kept, because its end is noted."""
    monkeypatch.setattr(actions_module, "_MOST_PLACES", 2)
    client.held.clear()
    for number in range(4):
        actions.begin("near", f"words-{number}", ActionRequest("kill", ""), "h")
    assert [len(actions.items("near", f"words-{number}")) for number in range(4)] == [1, 1, 1, 1]
    client.held.set()
    wait_until(lambda: all(actions.items("near", f"words-{n}")[0].state == "done" for n in range(4)), 20.0, "the ends")
    actions.begin("near", "words-4", ActionRequest("kill", ""), "h")
    assert [len(actions.items("near", f"words-{number}")) for number in range(5)] == [0, 1, 1, 1, 1]


def test_an_action_begins_while_pages_wait_for_a_prometheus(
    observations: Observations, actions: Actions, tmp_path: Path, clock: FakeClock
) -> None:
    """A person who kills a topology must not wait for charts."""
    answers = threading.Event()

    class Waiting(PrometheusHistory):
        def read(self, *_: object) -> list[SeriesPoints]:
            assert answers.wait(20.0)
            return []

    recorder = Recorder(tmp_path / "history", 2**20, clock, gap_s=5.0)
    recorder.prometheus["near"] = Waiting("http://prometheus:9090")

    async def ask() -> tuple[int, set[int]]:
        access = Access(Address("127.0.0.1", 1), TOKEN)
        app = application(observations, access, asyncio.Event(), recorder, actions=actions)
        transport, headers = httpx.ASGITransport(app=app), {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as sender:
            history = ACTIONS.replace("actions", "history")
            waiting = [asyncio.create_task(sender.get(history)) for _ in range(50)]
            try:
                async with asyncio.timeout(10.0):
                    begun = await sender.post(ACTIONS, json={"action": "kill", **CONFIRMED})
            finally:
                answers.set()
            return begun.status_code, {each.status_code for each in await asyncio.gather(*waiting)}

    assert asyncio.run(ask()) == (202, {200})
