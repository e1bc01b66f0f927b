"""The query language of Heron Tracker: its syntax, its operators, and the paths that evaluate it over the history."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron_cli.client import MetricsRow
from heron_service_tracker.history.recorder import Recorder
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.http.application import application
from heron_service_tracker.observed.task_figures import figures_of_tasks
from heron_service_tracker.paths.query_path import QueryAnswer
from heron_service_tracker.query.expression import Operation, Read, parse_query
from heron_service_tracker.query.timelines import Timeline, evaluated
from heron_service_tracker.request_errors import MalformedQueryError
from heron_service_tracker.watches.observations import Observations
from heron_testing.fake_clock import FakeClock

TIMES = range(0, 241, 60)
A = Timeline("a", {0: 1.0, 60: 2.0, 180: 4.0})
B = Timeline("b", {0: 10.0, 60: 20.0, 120: 30.0})
ONE = "cluster=near&environ=prod&topology=words"
MIB = 1024 * 1024


def value(query: str, one: list[Timeline] | None = None) -> list[tuple[str, dict[int, float]]]:
    """Evaluate a query in which ``m`` is the metric of two instances, and ``u`` that of one."""

    def read(wanted: Read | float) -> list[Timeline]:
        if isinstance(wanted, float):
            return [Timeline("", dict.fromkeys(TIMES, wanted))]
        if wanted.metric == "m":
            return one or [A, B]
        return [Timeline("", {0: 2.0, 60: 0.0, 120: 5.0})]

    return [(each.instance, dict(each.minutes)) for each in evaluated(parse_query(query), TIMES, read)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("TS(c,*,m)", [("a", {0: 1, 60: 2, 180: 4}), ("b", {0: 10, 60: 20, 120: 30})]),
        ("DEFAULT(0, TS(c, a, u))", [("", {0: 2, 60: 0, 120: 5, 180: 0, 240: 0})]),
        ("SUM(TS(c,*,m))", [("", {0: 11, 60: 22, 120: 30, 180: 4})]),
        ("SUM(1, TS(c,*,m))", [("", {0: 12, 60: 23, 120: 31, 180: 5, 240: 1})]),
        ("MAX(TS(c,*,m), TS(c,a,u))", [("", {0: 10, 60: 20, 120: 30, 180: 4})]),
        ("PERCENTILE(50, TS(c,*,m))", [("", {0: 10, 60: 20, 120: 30, 180: 4})]),
        ("PERCENTILE(0, TS(c,*,m))", [("", {0: 1, 60: 2, 120: 30, 180: 4})]),
        ("PERCENTILE(100, TS(c,*,m))", [("", {0: 10, 60: 20, 120: 30, 180: 4})]),
        ("DIVIDE(TS(c,a,u), 2)", [("", {0: 1, 60: 0, 120: 2.5})]),
        ("DIVIDE(TS(c,*,m), TS(c,a,u))", [("a", {0: 0.5}), ("b", {0: 5, 120: 6})]),  # not by zero
        ("DIVIDE(TS(c,a,u), TS(c,*,m))", [("a", {0: 2, 60: 0}), ("b", {0: 0.2, 60: 0, 120: 5 / 30})]),
        ("MULTIPLY(TS(c,*,m), TS(c,*,m))", [("a", {0: 1, 60: 4, 180: 16}), ("b", {0: 100, 60: 400, 120: 900})]),
        ("SUBTRACT(TS(c,*,m), 1)", [("a", {0: 0, 60: 1, 180: 3}), ("b", {0: 9, 60: 19, 120: 29})]),
        ("RATE(TS(c,*,m))", [("a", {60: 1}), ("b", {60: 10, 120: 10})]),  # only of minutes that follow each other
        ("RATE(TS(c,a,u))", [("", {120: 5})]),  # a total that becomes smaller has begun again
        (" SUM ( 1 , 2 ) ", [("", dict.fromkeys(TIMES, 3))]),
    ],
)
def test_operators_combine_minutes(query: str, expected: list[tuple[str, dict[int, float]]]) -> None:
    """Operators on two go by instance, and those on any number make one timeline."""
    assert value(query) == expected


def test_a_value_that_is_no_number_has_no_point() -> None:
    """JSON has no infinity, and a chart no place for it."""
    huge = [Timeline("a", {0: 1e300, 60: 1.0})]
    assert value("MULTIPLY(TS(c,*,m), TS(c,*,m))", huge) == [("a", {60: 1.0})]
    assert value("SUM(MULTIPLY(TS(c,*,m), 100000000), MULTIPLY(TS(c,*,m), 100000000))", huge)[0][1][60] == 2e8


def test_names_have_everything_but_commas_and_parentheses() -> None:
    """Heron's metrics have slashes and spaces at the ends count for nothing."""
    found = parse_query("DEFAULT(-1.5, TS( __stmgr__ , *, __time_spent/container_1_count_2 ))")
    read = Read("__stmgr__", "*", "__time_spent/container_1_count_2")
    assert found == Operation("DEFAULT", (read,), -1.5)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "its end"),
        ("5", "is a number; use an operator"),
        ("SUMM(1)", "operator 'SUMM' is unknown (nearest: 'SUM')"),
        ("SUM(1", "SUM has 'the end of the query' where ')' is expected"),
        ("SUM(1))", "goes on after its end"),
        ("SUM(,1)", "',' where an operator"),
        ("RATE(1, 2)", "RATE has 2 arguments; give it 1"),
        ("DIVIDE(1)", "DIVIDE has 1 arguments; give it 2"),
        ("PERCENTILE(101, 1)", "from 0 to 100"),
        ("DEFAULT(SUM(1), 1)", "first argument of DEFAULT is not a number"),
        ("TS(c, *)", "TS has ')' where ',' is expected"),
        ("TS(c, *, m, x)", "TS has ',' where ')' is expected"),
        ("SUM(" * 30 + "1" + ")" * 30, "more than 20 operators within each other"),
        ("SUM(" + "1," * 600 + "1)", "the limit is 1000"),
    ],
)
def test_a_query_that_is_none_is_refused(query: str, message: str) -> None:
    """The message has the part and what is expected."""
    with pytest.raises(MalformedQueryError) as found:
        parse_query(query)
    assert message in str(found.value)


@given(st.text(alphabet="SUMTAX(),.*019- cé\n", max_size=60))
def test_no_text_is_anything_but_a_query_or_refused(text: str) -> None:
    """A request brings any text."""
    try:
        parse_query(text)
    except MalformedQueryError:
        return


@pytest.fixture
def recorder(tmp_path: Path, observations: Observations, clock: FakeClock) -> Recorder:
    """Five minutes of history: the spout emits 10 tuples a second, and task 2 causes back pressure."""
    found = Recorder(tmp_path, 64 * MIB, clock, gap_s=30.0)
    topology = observations.topology("near", "words")
    clock.advance(60.0 - clock.wall_s() % 60.0)
    for second in range(301):
        rows = (
            MetricsRow("lines", 1, "lines-1", "emit-count", "counter", "tuples", 10.0 * second),
            MetricsRow("lines", 1, "lines-1", "resident-bytes", "gauge", "bytes", 64.0 * MIB),
            MetricsRow("count", 2, "count-2", "execute-count", "counter", "tuples", 5.0 * second),
        )
        at_s = clock.monotonic_s()
        found.take(replace(topology, figures=figures_of_tasks(rows), figures_at_s=at_s, observed_at_s=at_s))
        clock.advance(1.0)
    found.flush(everything=True)
    return found


def ask(observations: Observations, recorder: Recorder | None, path: str) -> httpx.Response:
    """Ask once."""

    async def once() -> httpx.Response:
        app = application(observations, Access(Address("127.0.0.1", 1)), asyncio.Event(), recorder)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
            return await client.get(path)

    return asyncio.run(once())


def times(clock: FakeClock, start: str = "start", end: str = "end") -> str:
    """The three whole minutes in the middle."""
    newest = int(clock.wall_s()) // 60 * 60
    return f"{start}={newest - 240}&{end}={newest - 120}"


def test_a_query_reads_the_history_of_instances(
    observations: Observations, recorder: Recorder, clock: FakeClock
) -> None:
    """A counter is what it counted in the minute."""
    path = f"/api/v1/clusters/near/topologies/words/query?{times(clock)}"
    found = ask(observations, recorder, f"{path}&query=TS(lines,*,__emit-count/default)")
    answer = msgspec.json.decode(found.content, type=QueryAnswer)
    (line,) = answer.items
    assert (line.instance, [each.value for each in line.points]) == ("container_1_lines_1", [600.0, 600.0, 600.0])
    path += "&query=DIVIDE(SUM(TS(count,*,execute-count)),TS(lines,container_1_lines_1,emit-count))"
    (line,) = msgspec.json.decode(ask(observations, recorder, path).content, type=QueryAnswer).items
    assert (line.instance, [each.value for each in line.points]) == ("", [0.5, 0.5, 0.5])


@pytest.mark.parametrize("path", ["metrics/query", "metricsquery"])
def test_scripts_for_heron_tracker_query_as_before(
    observations: Observations, recorder: Recorder, clock: FakeClock, path: str
) -> None:
    """The shape is Heron's, and so are names of metrics that have a counterpart here."""
    heron = f"/topologies/{path}?{ONE}&{times(clock, 'starttime', 'endtime')}"
    found = ask(observations, recorder, f"{heron}&query=TS(lines,*,__jvm-memory-used-mb)").json()
    (timeline,) = found["timeline"]
    assert timeline["instance"] == "container_1_lines_1"
    assert list(timeline["data"].values()) == [64.0, 64.0, 64.0]
    assert next(iter(timeline["data"])) == str(found["starttime"])
    back = "__time_spent_back_pressure_by_compid/container_1_count_2"
    (timeline,) = ask(observations, recorder, f"{heron}&query=DEFAULT(0,TS(__stmgr__,*,{back}))").json()["timeline"]
    assert (timeline.keys(), set(timeline["data"].values())) == ({"data"}, {0.0})
    every = "TS(__stmgr__,*,__time_spent_back_pressure_by_compid/*)"  # the timelines of many instances have their names
    found = ask(observations, recorder, f"{heron}&query=MULTIPLY({every},{every})").json()["timeline"]
    assert [each["instance"] for each in found] == ["container_1_count_2", "container_1_lines_1"]


@pytest.mark.parametrize("path", ["metrics/timeline", "metricstimeline"])
def test_a_timeline_has_each_metric_by_instance_and_minute(
    observations: Observations, recorder: Recorder, clock: FakeClock, path: str
) -> None:
    """Values are texts, as in Heron."""
    heron = f"/topologies/{path}?{ONE}&component=lines&{times(clock, 'starttime', 'endtime')}"
    found: dict[str, Any] = ask(observations, recorder, f"{heron}&metricname=emit-count").json()
    assert found["component"] == "lines"
    assert list(found["timeline"]["emit-count"]["container_1_lines_1"].values()) == ["600", "600", "600"]
    everything = ask(observations, recorder, heron).json()["timeline"]
    assert set(everything["resident-bytes"]) == {"container_1_lines_1"}
    one = ask(observations, recorder, f"{heron}&metricname=emit-count&instance=container_1_lines_1").json()
    assert one["timeline"] == found["timeline"]


def test_metrics_of_an_interval_are_what_its_minutes_have(observations: Observations, recorder: Recorder) -> None:
    """Heron UI shows the last ten minutes and hours; a counter is added up, a level is a mean."""
    names = "metricname=__emit-count/default&metricname=resident-bytes"
    found = ask(observations, recorder, f"/topologies/metrics?{ONE}&component=lines&interval=120&{names}").json()
    instance = "container_1_lines_1"
    values = {"__emit-count/default": {instance: "1200"}, "resident-bytes": {instance: str(64 * MIB)}}
    assert found == {"component": "lines", "interval": 120, "metrics": values}


@pytest.mark.parametrize(
    ("query", "code", "detail"),
    [
        ("query=TS(lins,*,emit-count)&start=0&end=60", 404, "no component 'lins' (nearest: 'lines')"),
        ("query=TS(lines,x,emit-count)&start=0&end=60", 404, "no instance 'x'"),
        ("query=TS(lines,*,emits)&start=0&end=60", 400, "metric 'emits' is unknown"),
        ("query=TS(__stmgr__,*,x)&start=0&end=60", 400, "is not __time_spent_back_pressure_by_compid/INSTANCE"),
        ("query=TS(lines,*,emit-count)&start=60&end=0", 400, "the times from 60 to 0"),
        ("query=TS(lines,*,emit-count)&start=0&end=9999999999", 400, "the times from 0"),
        ("query=SUM(&start=0&end=60", 400, "its end"),
        ("start=0&end=60", 400, "parameter 'query' is missing"),
        (
            "query=SUM(" + ",".join(["TS(lines,*,emit-count)"] * 30) + ")&start=0&end=1209600",
            400,
            "more than 500000 points",
        ),
        ("query=SUM(" + ",".join("1" * 30) + ")&start=0&end=1209600", 400, "more than 500000 points"),
    ],
)
def test_a_query_without_an_answer_says_why(
    observations: Observations, recorder: Recorder, query: str, code: int, detail: str
) -> None:
    """Heron's path has the same reason."""
    response = ask(observations, recorder, f"/api/v1/clusters/near/topologies/words/query?{query}")
    assert (response.status_code, detail in response.json()["detail"]) == (code, True), response.text
    heron = query.replace("start=", "starttime=").replace("end=", "endtime=")
    failed = ask(observations, recorder, f"/topologies/metrics/query?{ONE}&{heron}")
    assert failed.status_code == 400
    assert detail in failed.json()


def test_a_tracker_without_a_history_has_no_timelines(observations: Observations) -> None:
    """An empty one would claim that nothing happened."""
    found = ask(observations, None, "/api/v1/clusters/near/topologies/words/query?query=SUM(1)&start=0&end=60")
    assert (found.status_code, "--without-history" in found.json()["detail"]) == (503, True)
