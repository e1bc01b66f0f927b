"""The API on observations: answers, ages, errors, and requests of every malformed kind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace

import httpx
import msgspec
import pytest

from heron_cli.client import MetricsRow, TopologyEntry, TopologyStatus, UserErrorStatus
from heron_service_tracker.answers.answer_parts import shown_config
from heron_service_tracker.answers.answers import (
    EventsAnswer,
    ExceptionsAnswer,
    LogicalPlanAnswer,
    MetricsAnswer,
    TopologiesAnswer,
    TopologyAnswer,
)
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.http.application import application
from heron_service_tracker.observed.task_figures import figures_of_tasks
from heron_service_tracker.paths.openapi import openapi_document
from heron_service_tracker.paths.operations import OPERATIONS
from heron_service_tracker.paths.problems import Problem
from heron_service_tracker.watches.observations import METRICS_S, Observations, Reading
from heron_testing.fake_clock import FakeClock

LOOPBACK = Access(Address("127.0.0.1", 8888))
WORDS = "/api/v1/clusters/near/topologies/words"
DOCUMENT = json.loads(openapi_document())
ERROR = "topology 'words', component 'count', task 2: process raised ValueError: bad; at words.py, line 3; fix it"


def get(
    observations: Observations, url: str, headers: dict[str, str] | None = None, access: Access = LOOPBACK
) -> httpx.Response:
    """Ask an application once."""

    async def ask() -> httpx.Response:
        app = application(observations, access, asyncio.Event())
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8888") as client:
            return await client.get(url, headers=headers or {})

    return asyncio.run(ask())


def test_the_list_has_each_topology_and_each_cluster_that_is_away(observations: Observations, clock: FakeClock) -> None:
    """A cluster that does not answer hides no other one, and says its age and its reason."""
    clock.advance(7.0)
    observations.fail_cluster("far", "the server is away")
    answer = msgspec.json.decode(get(observations, "/api/v1/topologies").content, type=TopologiesAnswer)
    assert [(each.cluster, each.name, each.rate_per_s, each.age_s) for each in answer.items] == [
        ("near", "words", 10.0, 7.0)
    ]
    assert answer.items[0].spouts == ("lines",)
    assert [(each.name, each.age_s, each.error) for each in answer.away] == [("far", None, "the server is away")]


def test_a_cluster_that_goes_away_keeps_its_topologies(observations: Observations, clock: FakeClock) -> None:
    """What was true a minute ago is better than nothing, when its age is there."""
    observations.fail_cluster("near", "the server is away")
    observations.fail_topology("near", "words", "it does not answer")
    clock.advance(60.0)
    answer = msgspec.json.decode(get(observations, WORDS).content, type=TopologyAnswer)
    assert answer.status is not None
    assert (answer.age_s, answer.error) == (60.0, "it does not answer")


def test_metrics_are_read_often_while_somebody_looks_at_them(
    observations: Observations,
    clock: FakeClock,
    make_status: Callable[..., TopologyStatus],
    make_entry: Callable[..., TopologyEntry],
) -> None:
    """All metrics of all tasks cost fifteen times what the status costs, which is always read; figures cost half."""
    assert observations.reading_due("near", "words") is Reading.NOTHING
    for path in (WORDS, f"{WORDS}/physical-plan", f"{WORDS}/events", "/api/v1/topologies"):
        assert get(observations, path).status_code == 200
    clock.advance(METRICS_S - 0.1)
    assert observations.reading_due("near", "words") is Reading.NOTHING
    clock.advance(0.1)
    assert observations.reading_due("near", "words") is Reading.FIGURES
    observations.put_status("near", make_status(), ())
    for path, reading in (("flow", Reading.FIGURES), ("tasks", Reading.FIGURES), ("metrics", Reading.ALL)):
        assert observations.reading_due("near", "words") is Reading.NOTHING
        assert get(observations, f"{WORDS}/{path}").status_code == 200
        assert observations.reading_due("near", "words") is reading
        clock.advance(30.0)
        observations.put_status("near", make_status(), ())
    observations.put_list("near", [])
    assert observations.reading_due("near", "words") is Reading.NOTHING
    observations.put_list("near", [make_entry()])
    assert observations.reading_due("near", "words") is Reading.FIGURES  # of one that comes back, nothing is known


def test_figures_alone_keep_the_other_metrics_with_their_age(
    observations: Observations, clock: FakeClock, make_status: Callable[..., TopologyStatus]
) -> None:
    """A page that shows rates must not make the other metrics look new."""
    clock.advance(7.0)
    row = MetricsRow("lines", 1, "lines-1", "emit-count", "counter", "tuples", 100.0, {"stream": "default"}, 123.0)
    observations.put_status("near", make_status(), None, figures_of_tasks([row]))
    tasks, metrics = (get(observations, f"{WORDS}/{path}").json() for path in ("tasks", "metrics"))
    assert (tasks["age_s"], tasks["items"][0]["emit_per_s"]) == (0.0, 123.0)
    assert (metrics["age_s"], metrics["total"] > 1) == (7.0, True)


def test_answers_from_metrics_have_the_age_of_the_metrics(
    observations: Observations, clock: FakeClock, make_status: Callable[..., TopologyStatus]
) -> None:
    """A status that is new must not make old rates look new."""
    clock.advance(7.0)
    observations.put_status("near", make_status(), None)
    ages = {path: get(observations, f"{WORDS}{path}").json()["age_s"] for path in ("", "/tasks", "/flow", "/metrics")}
    assert ages == {"": 0.0, "/tasks": 7.0, "/flow": 7.0, "/metrics": 7.0}


@pytest.mark.parametrize("answers", [True, False])
def test_metrics_that_nobody_has_looked_at_are_read_for_the_first_request(
    observations: Observations,
    clock: FakeClock,
    make_status: Callable[..., TopologyStatus],
    make_metrics: Callable[..., tuple[MetricsRow, ...]],
    answers: bool,
) -> None:
    """They are not read while nobody looks, so those of the last reader may be old. A failure ends the wait."""
    asked: list[Reading] = []

    def read() -> None:
        asked.append(observations.reading_due("near", "words"))
        if answers:
            observations.put_status("near", make_status(), make_metrics(4321.0))
        else:
            observations.fail_topology("near", "words", "it does not answer")

    clock.advance(METRICS_S + 1.0)
    observations.on_look("near", "words", read)
    found = [get(observations, f"{WORDS}/metrics").json() for _ in range(2)]
    assert asked == [Reading.ALL]
    assert [(each["age_s"], each["error"], each["items"][0]["value"]) for each in found] == 2 * [
        (0.0, "", 4321.0) if answers else (METRICS_S + 1.0, "it does not answer", 100.0)
    ]


def test_the_metrics_of_an_ended_topology_are_not_waited_for(
    observations: Observations, clock: FakeClock, make_entry: Callable[..., TopologyEntry]
) -> None:
    """No watch reads them any more."""
    observations.put_list("near", [make_entry(state="killed")])
    clock.advance(METRICS_S + 1.0)
    assert get(observations, f"{WORDS}/metrics").json()["total"] == 3
    assert not observations.metrics_awaited("near", "words")


def test_one_name_in_two_clusters_is_two_topologies(
    observations: Observations, make_entry: Callable[..., TopologyEntry], make_status: Callable[..., TopologyStatus]
) -> None:
    """The path names the cluster."""
    observations.put_list("far", [make_entry(state="paused")])
    observations.put_status("far", make_status(state="paused"), None)
    states = {}
    for cluster in ("near", "far"):
        found = get(observations, f"/api/v1/clusters/{cluster}/topologies/words").content
        status = msgspec.json.decode(found, type=TopologyAnswer).status
        assert status is not None
        states[cluster] = status.state
    assert states == {"near": "running", "far": "paused"}


def test_pages_have_every_row_once(observations: Observations) -> None:
    """A reader follows `next_offset` to the end."""
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = get(observations, f"{WORDS}/metrics?limit=1&offset={offset}")
        answer = msgspec.json.decode(page.content, type=MetricsAnswer)
        assert answer.total == 3
        seen += [each.name for each in answer.items]
        offset = answer.next_offset
    assert seen == ["emit-count", "execute-count", "late-s"]


def test_metrics_are_selected_by_component_task_process_and_name(observations: Observations) -> None:
    """A selection that fits nothing is empty; a component that does not exist is an error."""
    chosen = get(observations, f"{WORDS}/metrics?component=count&task=2&name=execute-count&name=x")
    assert [row.process for row in msgspec.json.decode(chosen.content, type=MetricsAnswer).items] == ["count-2"]
    manager = get(observations, f"{WORDS}/metrics?process=stmgr-1")
    assert [row.name for row in msgspec.json.decode(manager.content, type=MetricsAnswer).items] == ["late-s"]
    assert msgspec.json.decode(get(observations, f"{WORDS}/metrics?name=x").content, type=MetricsAnswer).items == ()
    unknown = get(observations, f"{WORDS}/metrics?component=cound")
    assert unknown.status_code == 404
    assert "(nearest: 'count')" in unknown.json()["detail"]
    assert get(observations, f"{WORDS}/metrics?task=9").status_code == 404


def test_events_continue_after_a_number(observations: Observations, make_status: Callable[..., TopologyStatus]) -> None:
    """A reader that asks again with `last` sees each event once."""
    observations.put_status("near", make_status(state="paused"), None)
    first = msgspec.json.decode(get(observations, f"{WORDS}/events?limit=1").content, type=EventsAnswer)
    rest = msgspec.json.decode(get(observations, f"{WORDS}/events?after={first.last}").content, type=EventsAnswer)
    assert [each.kind for each in (*first.items, *rest.items)] == ["topology-seen", "state-changed"]
    assert rest.dropped == 0


def test_exceptions_name_component_task_and_time(
    observations: Observations, clock: FakeClock, make_status: Callable[..., TopologyStatus]
) -> None:
    """An error says where to look; its first time is that of its event."""
    clock.advance(5.0)
    observations.put_status("near", make_status(errors=(ERROR, "container 1 is down")), None)
    answer = msgspec.json.decode(get(observations, f"{WORDS}/exceptions").content, type=ExceptionsAnswer)
    assert [(each.component, each.task_id, each.first_at_s) for each in answer.items] == [
        ("", 0, clock.wall_s()),
        ("count", 2, clock.wall_s()),
    ]
    assert (answer.items[1].exception, answer.items[1].place) == ("ValueError", "words.py, line 3")
    assert (answer.items[0].exception, answer.items[0].place) == ("", "")
    chosen = get(observations, f"{WORDS}/exceptions?component=count").content
    assert [each.text for each in msgspec.json.decode(chosen, type=ExceptionsAnswer).items] == [ERROR]


def test_an_error_of_user_code_is_one_item_with_its_count_times_and_traceback(
    observations: Observations, make_status: Callable[..., TopologyStatus]
) -> None:
    """Its texts by task are not repeated. Without counts, the tasks of one line are still one item."""
    texts = [ERROR, ERROR.replace("task 2", "task 3")]
    error = UserErrorStatus("count", "process: ValueError at words.py, line 3", 140, {2: 139, 3: 1}, 10.0, 20.0)
    error = msgspec.structs.replace(
        error, exception="ValueError", place="words.py, line 3", message=ERROR, trace="Traceback"
    )
    tick = msgspec.structs.replace(
        error, error="process_tick: KeyError", count=1, tasks={2: 1}, newest_at_s=30.0, message="", place=""
    )
    plain = make_status(errors=(*texts, "container 1 is down"))
    for status, expected in (
        (replace(plain, user_errors=(error, tick)), [(None, {}), (1, {2: 1}), (140, {2: 139, 3: 1})]),
        (plain, [(None, {}), (None, {2: 0, 3: 0})]),
    ):
        observations.put_status("near", status, None)
        answer = msgspec.json.decode(get(observations, f"{WORDS}/exceptions").content, type=ExceptionsAnswer)
        assert sorted(((each.count, each.tasks) for each in answer.items), key=str, reverse=True) == sorted(
            expected, key=str, reverse=True
        )
    observations.put_status("near", replace(plain, user_errors=(error, tick)), None)
    first, second, _ = msgspec.json.decode(
        get(observations, f"{WORDS}/exceptions").content, type=ExceptionsAnswer
    ).items
    assert (first.text, first.newest_at_s) == ("process_tick: KeyError", 30.0), "the newest one is first"
    assert (second.text, second.task_id, second.first_at_s, second.newest_at_s) == (ERROR, 2, 10.0, 20.0)
    assert (second.exception, second.place, second.trace) == ("ValueError", "words.py, line 3", "Traceback")


def test_secrets_of_a_configuration_are_hidden(observations: Observations) -> None:
    """A component may be configured with the password of its database."""
    answer = msgspec.json.decode(get(observations, f"{WORDS}/logical-plan").content, type=LogicalPlanAnswer)
    assert answer.components[0].config == {"db.password": "(hidden)"}


def test_secrets_within_values_of_a_configuration_are_hidden() -> None:
    """A value may be a table of settings, or a URL with a password."""
    config = {
        "kafka": {"sasl.password": "hunter2", "hosts": ["h1"], "retries": 3, "proxies": ({"api_key": 1},)},
        "db.url": "postgres://crew:hunter2@h/db",
    }
    assert shown_config(config) == {
        "kafka": '{"sasl.password":"(hidden)","hosts":["h1"],"retries":3,"proxies":[{"api_key":"(hidden)"}]}',
        "db.url": "postgres://crew:(hidden)@h/db",
    }


def test_plans_that_were_not_read_are_not_known_yet(
    observations: Observations, make_entry: Callable[..., TopologyEntry]
) -> None:
    """An empty plan would claim that there are no components."""
    observations.put_list("near", [make_entry("young", "starting")])
    answer = get(observations, "/api/v1/clusters/near/topologies/young/packing-plan")
    assert answer.status_code == 503
    assert "the topology is starting" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("url", "code", "detail"),
    [
        ("/api/v1/clusters/neer/topologies/words", 404, "cluster 'neer' is unknown (nearest: 'near')"),
        ("/api/v1/clusters/near/topologies/word", 404, "has no topology 'word' (nearest: 'words')"),
        ("/api/v1/clusters/far/topologies/words", 404, "the cluster does not answer: it has not answered yet"),
        ("/api/v1/topologies?limt=1", 400, "parameter 'limt' is unknown (nearest: 'limit')"),
        ("/api/v1/topologies?limit=1&limit=2", 400, "parameter 'limit' is given 2 times"),
        ("/api/v1/topologies?limit=0", 400, "parameter 'limit': 0 is not a whole number from 1 to 1000"),
        ("/api/v1/topologies?limit=1e3", 400, "'1e3' is not a whole number from 1 to 1000"),
        ("/api/v1/topologies?limit=", 400, "'' is not a whole number"),
        ("/api/v1/topologies?limit=%D9%A1", 400, "is not a whole number"),
        ("/api/v1/topologies?cluster=%00", 400, "without NUL"),
        ("/api/v2/topologies", 404, "Not Found"),
    ],
)
def test_a_request_without_an_answer_gets_a_problem_document(
    observations: Observations, url: str, code: int, detail: str
) -> None:
    """The document has the status, and a detail with the nearest name or the range."""
    response = get(observations, url)
    problem = msgspec.json.decode(response.content, type=Problem)
    assert (response.status_code, problem.status, response.headers["content-type"]) == (
        code,
        code,
        "application/problem+json",
    )
    assert detail in problem.detail


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:8888"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({}, 200),
    ],
)
def test_pages_of_other_sites_read_nothing(observations: Observations, headers: dict[str, str], code: int) -> None:
    """Also a refusal has the security headers."""
    response = get(observations, "/api/v1/topologies", headers)
    assert response.status_code == code
    assert response.headers["x-content-type-options"] == "nosniff"
    assert ("words" in response.text) is (code == 200)


def test_a_token_is_needed_where_there_is_one(observations: Observations) -> None:
    """It is taken from the header alone: a URL is written into histories and logs."""
    access = Access(Address("192.0.2.1", 8888), "0123456789abcdef")
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        refused = get(observations, "/health?token=0123456789abcdef", headers, access)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert get(observations, "/health", {"Authorization": "Bearer 0123456789abcdef"}, access).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(observations: Observations, method: str) -> None:
    """The tracker only reads."""

    async def ask() -> int:
        transport = httpx.ASGITransport(app=application(observations, LOOPBACK, asyncio.Event()))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8888") as client:
            return (await client.request(method, WORDS)).status_code

    assert asyncio.run(ask()) == 405


def test_the_document_describes_every_path() -> None:
    """References lead to schemas, and each operation has its problems."""
    assert {each.path for each in OPERATIONS} < set(DOCUMENT["paths"])
    text = openapi_document().decode()
    for reference in {part.split('"')[0] for part in text.split('"$ref":"#/components/schemas/')[1:]}:
        assert reference in DOCUMENT["components"]["schemas"]
