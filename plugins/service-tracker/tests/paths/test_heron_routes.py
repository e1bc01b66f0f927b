"""The paths of Heron Tracker answer with its shapes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heron_cli.client import MetricsRow, TopologyEntry, TopologyStatus, UserErrorStatus
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.http.application import application
from heron_service_tracker.paths.heron_routes import heron_routes
from heron_service_tracker.watches.observations import Observations
from heron_testing.fake_clock import FakeClock

LOOPBACK = Access(Address("127.0.0.1", 8888))
WORDS = {"cluster": "near", "environ": "prod", "topology": "words"}
ERROR = "topology 'words', component 'count', task 2: process raised ValueError: bad; at words.py, line 3; fix it"
PATHS = sorted(each.path for each in heron_routes(Observations((), FakeClock())))


def ask(observations: Observations, path: str, query: list[tuple[str, str]] | dict[str, str]) -> httpx.Response:
    """Ask an application once."""

    async def once() -> httpx.Response:
        app = application(observations, LOOPBACK, asyncio.Event())
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
            return await client.get(f"{path}?{urlencode(query)}")

    return asyncio.run(once())


def answer(observations: Observations, path: str, **query: str) -> Any:  # noqa: ANN401
    """Return the answer about the topology of the fixture."""
    response = ask(observations, path, {**WORDS, **query})
    assert response.status_code == 200, response.text
    return response.json()


def test_lists_have_cluster_role_environment_and_names(observations: Observations) -> None:
    """A script takes the first level for the clusters, also where a cluster has no topology."""
    assert ask(observations, "/clusters", {}).json() == ["near", "far"]
    assert ask(observations, "/topologies", {}).json() == {"near": {"crew": {"prod": ["words"]}}, "far": {}}
    assert ask(observations, "/topologies", {"cluster": "near", "environ": "devel"}).json() == {"near": {}}
    assert ask(observations, "/topologies", {"role": "other"}).json() == {"near": {}, "far": {}}
    assert ask(observations, "/machines", {}).json() == {"near": {"prod": {"words": ["h1"]}}}


def test_the_states_tell_plans_and_locations(observations: Observations) -> None:
    """The list and the single state are the same document."""
    state = answer(observations, "/topologies/executionstate")
    assert ask(observations, "/topologies/states", {}).json() == {"near": {"prod": {"words": state}}}
    assert (state["jobname"], state["submission_user"], state["submission_time"]) == ("words", "ann", 1000)
    assert (state["has_physical_plan"], state["has_tmanager_location"], state["status"]) == (True, True, "Running")


def test_the_logical_plan_has_streams_inputs_and_stages(observations: Observations) -> None:
    """Groupings have Heron's names, and secrets are hidden."""
    plan = answer(observations, "/topologies/logicalplan")
    assert plan["stages"] == 2
    assert plan["spouts"]["lines"]["outputs"] == [{"stream_name": "default"}]
    assert plan["spouts"]["lines"]["config"] == {"db.password": "(hidden)"}
    source = {"stream_name": "default", "component_name": "lines", "grouping": "FIELDS"}
    assert plan["bolts"]["count"]["inputs"] == [source]
    assert plan["bolts"]["count"]["inputComponents"] == ["lines"]


def test_the_plans_place_instances(observations: Observations) -> None:
    """The names of instances join the plans and the metrics."""
    packing = answer(observations, "/topologies/packingplan")
    (container,) = packing["container_plans"]
    assert container["required_resources"] == {"cpu": 2.0, "ram": 1024, "disk": 2048}
    assert [each["task_id"] for each in container["instances"]] == [1, 2]
    physical = answer(observations, "/topologies/physicalplan")
    assert physical["instance_groups"] == {"container_1": ["container_1_lines_1", "container_1_count_2"]}
    assert physical["stmgrs"]["stmgr-1"]["instance_ids"] == physical["instance_groups"]["container_1"]
    assert physical["stmgrs"]["stmgr-1"]["port"] == 9
    assert physical["spouts"] == {"lines": ["container_1_lines_1"]}
    assert answer(observations, "/topologies/runtimestate") == {"topology_version": "words-1", "stmgrs": {}}


def test_the_info_has_all_parts(observations: Observations) -> None:
    """One request shows a page of Heron UI."""
    info = answer(observations, "/topologies/info")
    for part, path in (("logical_plan", "logicalplan"), ("physical_plan", "physicalplan"), ("metadata", "metadata")):
        assert info[part] == answer(observations, f"/topologies/{path}")
    assert info["tmanager_location"]["host"] == "h1"


def test_a_topology_that_is_starting_has_an_info_with_empty_plans(
    observations: Observations, make_entry: Callable[..., TopologyEntry]
) -> None:
    """Heron UI shows such a topology in its list."""
    observations.put_list("near", [make_entry(state="starting")])
    observations.put_list("far", [make_entry("young", "starting")])
    query = {"cluster": "far", "environ": "prod", "topology": "young"}
    info = ask(observations, "/topologies/info", query).json()
    assert info["physical_plan"]["instances"] == {}
    assert info["execution_state"]["has_packing_plan"] is False
    refused = ask(observations, "/topologies/logicalplan", query)
    assert (refused.status_code, refused.json()[:15]) == (400, "request failed:")


def test_metrics_are_totals_under_the_names_that_were_asked_for(observations: Observations) -> None:
    """Heron's names work, and values are texts as there."""
    found = answer(observations, "/topologies/metrics", component="lines", metricname="__emit-count/default")
    assert found == {
        "component": "lines",
        "interval": -1,
        "metrics": {"__emit-count/default": {"container_1_lines_1": "100"}},
    }
    assert set(answer(observations, "/topologies/metrics", component="count")["metrics"]) == {"execute-count"}


def test_a_metric_of_a_stream_is_not_that_of_all_streams(
    observations: Observations, make_status: Callable[..., TopologyStatus]
) -> None:
    """Heron's names have the stream, and of executions also the component that emits it."""

    def row(name: str, value: float, **labels: str) -> MetricsRow:
        return MetricsRow("count", 2, "count-2", name, "counter", "tuples", value, labels)

    rows = (
        row("emit-count", 1.0, stream="default"),
        row("emit-count", 2.0, stream="late"),
        row("execute-count", 4.0, component="lines", stream="default"),
        row("execute-count", 8.0, component="other", stream="default"),
    )
    observations.put_status("near", make_status(), rows)
    expected = {
        "__emit-count/default": "1",
        "__emit-count/late": "2",
        "__emit-count": "3",
        "__execute-count/default": "12",
        "__execute-count/lines/default": "4",
    }
    for name, total in expected.items():
        found = answer(observations, "/topologies/metrics", component="count", metricname=name)
        assert found["metrics"] == {name: {"container_1_count_2": total}}
    found = answer(observations, "/topologies/metrics", component="count", metricname="__emit-count/none")
    assert found["metrics"] == {}


def test_every_response_says_how_long_it_took(observations: Observations) -> None:
    """As in Heron Tracker; scripts watch it."""
    for path in ("/clusters", "/topologies/info"):
        assert 0 <= float(ask(observations, path, {}).headers["x-process-time"]) < 60


def test_an_instance_has_its_process_id(observations: Observations) -> None:
    """The document is that of a command that has run."""
    found = answer(observations, "/topologies/pid", instance="container_1_count_2")
    assert (found["stdout"], found["stderr"]) == ("12", "")
    missing = ask(observations, "/topologies/pid", {**WORDS, "instance": "container_1_cound_2"})
    assert (missing.status_code, "(nearest: 'container_1_count_2')" in missing.json()) == (400, True)


def test_exceptions_are_listed_and_summed_up_by_class(
    observations: Observations, make_status: Callable[..., TopologyStatus]
) -> None:
    """The list has the text, the summary the class."""
    observations.put_status("near", make_status(errors=(ERROR,)), None)
    (found,) = answer(observations, "/topologies/exceptions", component="count")
    assert (found["hostname"], found["instance_id"], found["stack_trace"]) == ("h1", "container_1_count_2", ERROR)
    (group,) = answer(observations, "/topologies/exceptionsummary", component="count")
    assert (group["class_name"], group["count"]) == ("ValueError", "1")
    assert answer(observations, "/topologies/exceptions", component="lines") == []
    counted = UserErrorStatus(
        "count", "process: ValueError", 140, {2: 140}, 10.0, 20.0, "ValueError", "words.py, line 3", ERROR
    )
    observations.put_status("near", make_status(errors=(ERROR,), user_errors=(counted,)), None)
    for path in ("exceptions", "exceptionsummary"):
        (found,) = answer(observations, f"/topologies/{path}", component="count")
        assert (found["first_time"], found["last_time"], found["count"]) == ("10", "20", "140")


@pytest.mark.parametrize(
    ("path", "query", "reason"),
    [
        ("/topologies/info", {"cluster": "near", "topology": "words"}, "parameter 'environ' is missing"),
        ("/topologies/info", {**WORDS, "cluster": "neer"}, "cluster 'neer' is unknown (nearest: 'near')"),
        ("/topologies/info", {**WORDS, "environ": "devel"}, "has environ 'prod' and role 'crew'"),
        ("/topologies/info", {**WORDS, "role": "other"}, "has environ 'prod' and role 'crew'"),
        ("/topologies/metrics", {**WORDS, "component": "cound"}, "(nearest: 'count')"),
        ("/topologies/metrics", {**WORDS, "component": "count", "instance": "x"}, "there is no instance 'x'"),
        ("/topologies/metrics", {**WORDS, "component": "count", "interval": "-60"}, "parameter 'interval'"),
        ("/topologies", {"cluster": "neer"}, "cluster 'neer' is unknown"),
    ],
)
def test_a_request_without_an_answer_fails_as_in_heron(
    observations: Observations, path: str, query: dict[str, str], reason: str
) -> None:
    """The body is a JSON text, and the status 400."""
    response = ask(observations, path, query)
    assert response.status_code == 400
    assert response.json().startswith("request failed: ")
    assert reason in response.json()


NAMES = [
    "cluster",
    "environ",
    "topology",
    "role",
    "component",
    "instance",
    "metricname",
    "interval",
    "query",
    "starttime",
    "x",
]
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.sampled_from(["near", "far", "prod", "words", "count", "-1", "1e9"]),
)


@settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(path=st.sampled_from(PATHS), query=st.lists(st.tuples(st.sampled_from(NAMES), TEXTS), max_size=8))
def test_no_query_makes_the_tracker_fail(observations: Observations, path: str, query: list[tuple[str, str]]) -> None:
    """Every request has an answer or a reason."""
    response = ask(observations, path, query)
    assert response.status_code in {200, 400}
    response.json()
