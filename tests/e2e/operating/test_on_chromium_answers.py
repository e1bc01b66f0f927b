"""The pages with answers of the API that a test makes up: decisions, heat maps, wide graphs, hostile texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import CDPSession, expect

from heron.clock import wall_s
from heron_testing_servers.chromium import ChromiumBrowser
from watched_pages import HOSTILE, SHOWN, WAIT_MS, WatchedPage, answering, start_ui

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

STREAM = {"stream": "default", "grouping": "shuffle", "rate_per_s": 1e6}
MOST_DRAWING_S = 1.0  # of a graph, with the scripts of the page
LISTED = {"next_offset": None, "age_s": 0.0, "error": ""}


NOTES_OUTSIDE = """
[...document.querySelectorAll("a.node")].filter((each) => {
  const [note, box] = [".note", "rect"].map((part) => each.querySelector(part).getBoundingClientRect());
  return note.left < box.left || note.right > box.right;
}).map((each) => each.textContent)
"""


@pytest.fixture
def watched(chromium: ChromiumBrowser) -> Iterator[WatchedPage]:
    """A new page of 1280 pixels."""
    page = WatchedPage(chromium)
    yield page
    page.close()


def test_decisions_are_shown_with_their_reasons(sandbox: Sandbox, watched: WatchedPage) -> None:
    """A decision has cause, evidence and reason, and is marked by time."""
    run = sandbox.start("steady.py")
    _, url = start_ui(sandbox)
    page = watched.page
    place = "/clusters/local/topologies/steady"
    decision = {
        "number": 7,
        "at_s": wall_s() - 5,
        "policy": "ds2",
        "state": "effective",
        "cause": "slow-task",
        "subject": HOSTILE,
        "confidence": 0.9,
        "evidence": ["count/2 is busy 98 % of the time", "its host is idle"],
        "kind": "update",
        "action": "4 tasks for count",
        "command": "heron update steady count=4",
        "reason": "its effect was seen",
        "undoes": 0,
    }
    health = {"mode": "act", "paused": False, "problem": "", "total": 1, **LISTED}
    answering(page, f"{place}/health", {**health, "items": [decision]})
    page.goto(f"{url}/local/steady/health")
    expect(page.locator(".decisions li")).to_contain_text("4 tasks for count")
    expect(page.locator(".decisions li")).to_contain_text("slow-task of " + HOSTILE[:20])
    expect(page.locator(".decisions li")).to_contain_text("count/2 is busy 98 % of the time; its host is idle")
    assert watched.faults() == []

    end_s = int(wall_s()) // 10 * 10  # charts that stand still, with the decision in their middle
    points = [{"at_s": at_s, "value": 5.0, "most": 5.0} for at_s in range(end_s - 590, end_s, 10)]
    series = [{"component": "numbers", "task_id": 0, "metric": "emit-count", "points": points}]
    times = {"start_s": end_s - 900, "end_s": end_s, "step_s": 10}
    history = {**times, "series": series, "events": [], "age_s": 0.0, "error": "", "prometheus_error": ""}
    answering(page, f"{place}/history", history)
    answering(page, f"{place}/health", {**health, "items": [{**decision, "at_s": end_s - 300}]})
    page.goto(f"{url}/local/steady/timelines")
    over = page.locator(".chart .u-over").first
    expect(over).to_be_visible()
    expect(page.locator(".at-cursor")).to_be_hidden()
    said = page.locator(".at-cursor", has_text="health manager, effective: 4 tasks for count")
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    expect(said).to_be_visible()
    shown = said.inner_text()
    assert "script>" in shown
    assert "\u202e" not in shown
    (run.out / "stop").touch()
    run.finished()


def test_tasks_are_compared_by_time_at_an_address(sandbox: Sandbox, watched: WatchedPage) -> None:
    """A link of the tasks leads there, and a colleague who gets the address sees the same lines."""
    run = sandbox.start("steady.py")
    _, url = start_ui(sandbox)
    page = watched.page
    end_s = int(wall_s()) // 60 * 60
    points = [{"at_s": at_s, "value": 0.25, "most": 1.0} for at_s in range(end_s - 600, end_s, 60)]
    series = [
        {"component": "count", "task_id": task, "metric": metric, "points": points}
        for task in (0, 2, 3)
        for metric in ("engine/cpu-wait-s", "busy", "back-pressure", "user/size")
    ]
    series[-1] = {**series[-1], "points": [{**point, "value": -2.5} for point in points]}
    times = {"start_s": end_s - 900, "end_s": end_s, "step_s": 60}
    history = {**times, "series": series, "events": [], "age_s": 0.0, "error": "", "prometheus_error": ""}
    answering(page, "/clusters/local/topologies/steady/history", history)
    rows = [row_of_task(task, "count", busy=task / 10) for task in (2, 3)]
    answering(page, "/clusters/local/topologies/steady/tasks", {"items": rows, "total": 2, **LISTED})
    page.goto(f"{url}/local/steady/tasks")
    with page.expect_request(re.compile("/history.*&task=3&task=2$")):
        page.get_by_role("link", name="Compare its tasks by time").click()
    expect(page).to_have_url(f"{url}/local/steady/timelines?tasks=3%2C2")
    expect(page.locator(".chart")).to_have_count(3)
    expect(page.get_by_role("slider").last).to_have_accessible_name(
        re.compile("^user/size by .* count/2 0.250, count/3 -2.50$")
    )
    page.get_by_label("Chart").select_option("Busy share of time")
    expect(page).to_have_url(f"{url}/local/steady/timelines?tasks=3%2C2&metric=busy")
    expect(page.locator(".chart")).to_have_count(1)
    expect(page.get_by_role("slider")).to_have_accessible_name(
        re.compile("^Busy share of time by time.* Newest values: count/2 25 %, count/3 25 %$")
    )
    assert watched.faults() == []
    with page.expect_request(re.compile("/history.*&task=3&task=2&metric=engine%2Fcpu-wait-s$")):
        page.get_by_label("Chart").select_option("engine/cpu-wait-s")
    expect(page).to_have_url(f"{url}/local/steady/timelines?tasks=3%2C2&metric=engine%2Fcpu-wait-s")
    expect(page.locator(".chart")).to_have_count(1)
    expect(page.get_by_role("slider")).to_have_accessible_name(
        re.compile("^engine/cpu-wait-s by time.* Newest values: count/2 25 %, count/3 25 %$")
    )
    page.get_by_label("Tasks, at most 16").fill("3 x 3")
    with page.expect_request(re.compile("/history.*&task=3$")):
        page.get_by_role("button", name="Compare").click()
    page.get_by_role("button", name="Show the components").click()
    expect(page).to_have_url(f"{url}/local/steady/timelines")
    (run.out / "stop").touch()
    run.finished()


def test_an_error_has_its_count_times_tasks_and_traceback_and_can_be_saved(
    sandbox: Sandbox, watched: WatchedPage
) -> None:
    """A person sees whether it still happens, and can send all of it to a colleague."""
    run = sandbox.start("steady.py")
    _, url = start_ui(sandbox)
    page = watched.page
    error = {"component": "pass", "first_at_s": 1000.0, "exception": "ValueError", "place": "steady.py, line 9"}
    error |= {"task_id": 3, "text": f"task 3 raised {HOSTILE}", "trace": f"Traceback {HOSTILE}"}
    error |= {"count": 1140, "tasks": {"2": 1, "3": 1139}, "newest_at_s": 2000.0}
    other = {"component": "", "task_id": 0, "text": "else", "first_at_s": None, "exception": "", "place": ""}
    other |= {"count": None, "tasks": {}, "newest_at_s": None, "trace": ""}
    answering(page, "/clusters/local/topologies/steady/exceptions", {"items": [error, other], "total": 2, **LISTED})
    page.goto(f"{url}/local/steady/problems")
    expect(page.locator(".errors > li")).to_have_count(2)
    first = page.locator(".errors > li").first
    expect(first).to_contain_text("ValueError at steady.py, line 9")
    expect(first).to_contain_text(re.compile(r"1,140 times in pass, tasks 3 \(1,139\), 2 \(1\), first .*, newest "))
    expect(first).to_contain_text("The log of a task has the first one only: show it.")
    expect(first.get_by_role("link", name="show it")).to_have_attribute("href", re.compile("/task/3/logs.search=Value"))
    died = page.get_by_role("heading", name="Processes that died")
    expect(died).to_have_count(0)  # a task that fails tuples goes on
    first.get_by_text("Traceback of the first one").click()
    expect(first.get_by_label("Traceback")).to_have_text(f"Traceback {SHOWN}")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the errors as JSON").click()
    assert saved.value.suggested_filename == "steady-errors.json"
    printable = {"text": f"task 3 raised {SHOWN}", "trace": f"Traceback {SHOWN}"}
    assert json.loads(saved.value.path().read_text(encoding="utf-8")) == [{**error, **printable}, other]
    assert page.evaluate("window.hacked") is None
    assert watched.faults() == []
    (run.out / "stop").touch()
    run.finished()


def test_only_what_is_bad_is_shaded_also_among_two_tasks(sandbox: Sandbox, watched: WatchedPage) -> None:
    """A task that is better than the others is no reason to look, and two tasks are enough for a comparison."""
    run = sandbox.start("steady.py")
    _, url = start_ui(sandbox)
    page = watched.page
    rows = [
        row_of_task(1, "numbers", kind="spout", busy=1.0, time={"user-blocked": 0.95}, rate_per_s=50.0),
        row_of_task(2, "pass", latency_p99_s=1e-6, rate_per_s=9000.0),
        row_of_task(3, "pass", busy=0.9, queue_bytes=2.0**20, restarts=1, resident_bytes=84.0 * 2**20),
        row_of_task(4, "count", resident_bytes=None),
        row_of_task(5, "idle", rate_per_s=10.0),
        row_of_task(6, "idle"),
    ]
    answering(page, "/clusters/local/topologies/steady/tasks", {"items": rows, "total": 6, **LISTED})
    shades = {"": 5, "rate": 5, "queue": 5, "latency": 5, "memory": 4, "restarts": 3}  # of task 3
    for by, shade in shades.items():
        page.goto(f"{url}/local/steady/tasks?by={by}")
        expect(page.locator(".title .state")).to_be_visible()  # the server knows the topology, which has just begun
        expect(page.locator(".squares a")).to_have_count(6)
        found = page.locator(".squares a").evaluate_all("all => all.map((each) => [each.textContent, each.className])")
        expected = {**dict.fromkeys("123456", "heat-0"), "3": f"heat-{shade}"}
        assert dict(found) == {**expected, **({"4": ""} if by == "memory" else {})}, by
        assert watched.faults() == [], by
    told = page.locator(".component .troubles li")
    expect(told).to_contain_text(
        [
            "Task 3 does 11 % of the tuples of the others, although tuples wait for it",
            "Task 3 has 1.00 MiB in its queue, and the others have 100 B.",
            "Task 3 has 84.0 MiB of memory, and the others have 33.0 MiB.",
        ]
    )
    expect(told).to_have_count(3)
    told.get_by_role("link", name="Look at its memory").click()
    expect(page).to_have_url(f"{url}/local/steady/task/3/memory")
    expect(page.get_by_role("button", name="Show what its memory holds")).to_be_focused()
    rows = [row_of_task(2, "pass", rate_per_s=100.0), row_of_task(3, "pass", rate_per_s=900.0, queue_bytes=2.0**20)]
    answering(page, "/clusters/local/topologies/steady/tasks", {"items": rows, "total": 2, **LISTED})
    page.goto(f"{url}/local/steady/tasks")
    now = "Task 3 executes 9.0 times the tuples of the others now: it gets more of them, or works off what waits."
    expect(told.first).to_contain_text(now)
    assert not re.search("skew|keys", told.first.inner_text()), "a page does not know what was routed"
    (run.out / "stop").touch()
    run.finished()


def test_four_components_in_a_line_fit_and_the_memory_of_a_leak_stands_out(
    sandbox: Sandbox, watched: WatchedPage
) -> None:
    """A wider graph shrinks as long as it can be read. Then it scrolls by itself."""
    run = sandbox.start("steady.py")
    _, url = start_ui(sandbox)
    page = watched.page
    for components in (4, 5, 9):
        nodes = [node_of(f"stage {number}", leaks=number == 2) for number in range(components)]
        edges = [{"source": one["name"], "target": other["name"], **STREAM} for one, other in pairwise(nodes)]
        flow = {"nodes": nodes, "edges": edges, "age_s": 0.0, "error": ""}
        answering(page, "/clusters/local/topologies/steady/flow", flow)
        page.goto(f"{url}/local/steady")
        expect(page.locator("a.node")).to_have_count(components)
        graph = page.locator("svg.graph").bounding_box()
        assert graph is not None
        assert graph["width"] <= 1240 or components == 9
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        assert page.locator(".edge text").first.evaluate("each => each.getBoundingClientRect().height") > 8
        assert watched.faults() == []
    expect(page.locator("a.node", has=page.locator(".much"))).to_contain_text("stage 2")
    expect(page.locator(".much")).to_have_text("largest task 84.0 MiB")
    row = page.get_by_role("row", name=re.compile("^stage 2 bolt"))
    expect(row.get_by_role("cell", name="117 MiB")).to_be_visible()
    expect(row.locator(".heat-4")).to_have_text("84.0 MiB")
    (run.out / "stop").touch()
    run.finished()


def test_a_large_graph_is_in_levels_and_can_be_searched(sandbox: Sandbox, watched: WatchedPage) -> None:
    """60 components cannot be read at once; what is in trouble is seen at once. Each choice has an address."""
    run = sandbox.start("steady.py")
    _, url = start_ui(sandbox)
    page = watched.page
    names = [[f"stage {level} {number}" for number in range(6)] for level in range(10)]
    nodes = [node_of(name, leaks=False) for level in names for name in level]
    nodes[6 * 4 + 2] |= {"culprits": [71, 72, 73, 74], "causes": ["the task is slow"]}
    pairs = [(one, other) for before, after in pairwise(names) for one, other in zip(before, after, strict=True)]
    edges = [{"source": one, "target": other, **STREAM} for one, other in [*pairs, (names[0][0], names[9][0])]]
    flow = {"nodes": nodes, "edges": edges, "age_s": 0.0, "error": ""}
    answering(page, "/clusters/local/topologies/steady/flow", flow)
    for path, drawn in (("graph?open=0,1,2,3,4,5,6,7,8,9", 60), ("graph", 11)):
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})  # which other work changes little
        before_s = task_s(session)
        page.goto(f"{url}/local/steady/{path}")
        expect(page.locator("a.node")).to_have_count(drawn)
        assert 0.0 < task_s(session) - before_s <= MOST_DRAWING_S
        session.detach()
    expect(page.locator("a.node.culprit")).to_contain_text("stage 4 2")
    expect(page.locator("a.node.culprit .note")).to_have_text("back pressure by 4 tasks")
    expect(page.locator("a.node.culprit title")).to_contain_text("back pressure by task 71, 72, 73, 74")
    assert page.evaluate(NOTES_OUTSIDE) == []
    expect(page.locator("a.level").nth(4)).to_contain_text("level 4: 5 components")
    expect(page.locator(".edge")).to_have_count(12)  # in and out of both nodes of level 4, and from first to last
    expect(page.locator(".edge title").first).to_have_text("6 streams from level 0 to level 1: 6.00 M/s")
    assert watched.faults() == []
    page.locator("a.level").nth(1).click()
    expect(page).to_have_url(f"{url}/local/steady/graph?open=1")
    expect(page.locator("a.node")).to_have_count(16)
    page.get_by_role("button", name="Open all levels").click()
    expect(page.locator("a.node")).to_have_count(60)
    page.get_by_role("button", name="Close the levels").click()
    expect(page.locator("a.node")).to_have_count(11)

    page.get_by_label("Find components").fill("STAGE 4 2")
    page.get_by_role("button", name="Find").click()
    expect(page).to_have_url(f"{url}/local/steady/graph?find=STAGE+4+2")
    expect(page.locator("a.node .name")).to_have_text(["stage 3 2", "stage 4 2", "stage 5 2"])
    expect(page.get_by_role("region", name="Components").locator("tbody tr")).to_have_count(1)
    page.goto(f"{url}/local/steady/graph?find=nothing")
    expect(page.get_by_text("No component has nothing in its name.")).to_be_visible()
    assert watched.faults() == []
    (run.out / "stop").touch()
    run.finished()


def test_hostile_texts_are_shown_as_they_are(sandbox: Sandbox, watched: WatchedPage) -> None:
    """A name, an error and a cluster's message become text, whatever they contain; nothing leaves its place.

    A mark of direction, which shows a text in another order than it has, is shown as a sign. Paths keep it.
    """
    _, url = start_ui(sandbox)
    page = watched.page
    item = {
        **dict.fromkeys(("id", "role", "env", "user"), HOSTILE),
        "cluster": HOSTILE,
        "name": HOSTILE,
        "state": "running",
        "since_s": 1.0,
        "containers": 1,
        "tasks": 1,
        "spouts": [HOSTILE],
        "rate_per_s": 1.0,
        "culprits": 0,
        "errors": [],
        "trouble": [{"kind": "run", "text": HOSTILE, "component": HOSTILE, "task_id": 0, "container_id": 0}],
        "health": HOSTILE,
        "links": [],
        "age_s": 0.0,
        "error": "",
    }
    away = {"name": HOSTILE, "topologies": 0, "age_s": None, "error": HOSTILE}
    answering(page, "/topologies", {"items": [item], "total": 1, "next_offset": None, "away": [away], "age_s": 0.0})
    page.goto(f"{url}/")
    expect(page.get_by_role("link", name=SHOWN)).to_have_count(2)  # the name, and the trouble
    link = page.get_by_role("rowheader").get_by_role("link", name=SHOWN)
    expect(link).to_be_visible()
    assert link.get_attribute("href", timeout=WAIT_MS) is not None
    assert "<" not in str(link.get_attribute("href"))
    assert page.locator("main script").count() == 0
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "%E2%80%AE" in str(link.get_attribute("href"))
    assert "\u202e" not in page.locator("main").inner_text()
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(SHOWN)
    expect(page).to_have_title(re.compile(f"^graph . {re.escape(SHOWN)} . Heron$"))
    assert page.evaluate("window.hacked") is None
    assert watched.faults() == []


def test_a_wrong_token_is_told_and_nothing_is_asked_with_it(sandbox: Sandbox, watched: WatchedPage) -> None:
    """A page that asks again every second would fill a log, and a person would wait for values that never come."""
    sandbox.environ["UI_TOKEN"] = "a-token-of-the-tests"
    _, url = start_ui(sandbox, "--token-env", "UI_TOKEN")
    page = watched.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    page.clock.install()
    page.goto(f"{url}/")
    page.get_by_label("Token").fill("not-the-token-of-tests")
    page.get_by_role("button", name="Show the pages").click()
    expect(page.get_by_role("alert")).to_have_text("The server does not accept the token that you gave.")
    first = len(asked)
    page.clock.run_for(60_000)
    assert len(asked) == first > 0
    page.get_by_label("Token").fill("a-token-of-the-tests")
    page.get_by_role("button", name="Show the pages").click()
    expect(page.get_by_text("No topology runs.")).to_be_visible()


def test_what_is_unknown_is_told_once_and_actions_say_what_allows_them(sandbox: Sandbox, watched: WatchedPage) -> None:
    """Each view of an unknown topology would repeat the same sentence."""
    run = sandbox.start("steady.py")
    _, url = start_ui(sandbox)
    page = watched.page
    page.goto(f"{url}/nowhere/steady/tasks")
    expect(page.get_by_text("cluster 'nowhere' is unknown; known: ")).to_have_count(1)
    expect(page.locator("nav.tabs")).to_have_count(0)
    page.goto(f"{url}/local/steady/actions")
    expect(page.get_by_text("start it with --allow-actions and --token-file FILE")).to_be_visible()
    (run.out / "stop").touch()
    run.finished()


def test_values_that_are_old_say_since_when_without_the_reason(sandbox: Sandbox, watched: WatchedPage) -> None:
    """The reason has addresses and limits, which a person opens if needed."""
    run = sandbox.start("steady.py")
    _, url = start_ui(sandbox)
    page = watched.page
    page.goto(f"{url}/local/steady")
    expect(page.locator(".title .state-running")).to_be_visible()
    (manager,) = run.processes("tmanager")
    manager.suspend()
    try:
        told = page.locator(".notice.bad", has_text="These values are of ")
        expect(told).to_contain_text(re.compile(r", \d+ s ago\. Newer ones could not be read since\."))
        expect(page.get_by_text("newer values cannot be read", exact=True)).to_be_visible()
        reason = page.get_by_text("did not answer: nothing came within")
        expect(reason).not_to_be_visible()
        told.get_by_text("Reason").click()
        expect(reason).to_be_visible()
    finally:
        manager.resume()
    (run.out / "stop").touch()
    run.finished()


def test_metrics_have_their_units_and_an_update_its_phase(sandbox: Sandbox, watched: WatchedPage) -> None:
    """A histogram counts samples, and its quantiles have the unit. The page of checkpoints tells what is waited for."""
    run = sandbox.start("steady.py")
    _, url = start_ui(sandbox)
    page = watched.page
    row: dict[str, object] = {"component": "pass", "task_id": 2, "process": "pass-2", "labels": {}, "rate_per_s": None}
    row |= {"p50": None, "p99": None}
    latency = {
        **row,
        "name": "execute-latency",
        "kind": "histogram",
        "unit": "s",
        "value": 5000,
        "p50": 0.002,
        "p99": 0.1,
    }
    queue = {**row, "name": "in-queue-bytes", "kind": "gauge", "unit": "bytes", "value": 262_144}
    place = "/clusters/local/topologies/steady"
    answering(page, f"{place}/metrics", {"items": [latency, queue], "total": 2, **LISTED})
    page.goto(f"{url}/local/steady/task/2")
    metrics = page.get_by_role("region", name="Metrics of the task")
    expect(metrics.get_by_role("row").nth(1)).to_have_text(re.compile(r"execute-latency5,000samples.2\.00 ms100 ms"))
    expect(metrics.get_by_role("row").nth(2)).to_have_text(re.compile("in-queue-bytes262,144bytes...$"))
    known = page.evaluate(f"fetch('/api/v1{place}').then((answer) => answer.json())")
    update = {"number": 1, "phase": "switch", "target": "p2", "added": [4], "removed": [], "waits_for": "container 2"}
    known["status"]["update"] = update
    event = f"event: topology\ndata: {json.dumps(known)}\n\n"
    page.route("**/live", lambda route: route.fulfill(body=event, content_type="text/event-stream"))
    page.goto(f"{url}/local/steady/checkpoints")
    told = "Update 1 to packing plan p2 is in the phase switch, adds task 4: waits for container 2"
    expect(page.get_by_text(told)).to_be_visible()
    (run.out / "stop").touch()
    run.finished()


def task_s(session: CDPSession) -> float:
    """The processor time of the page's main thread so far, in seconds."""
    measured = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in measured if each["name"] == "TaskDuration"))


def row_of_task(task_id: int, component: str, **changes: object) -> dict[str, object]:
    """A task that does its part: a row of the API."""
    row: dict[str, object] = {**dict.fromkeys(("host", "busy_from", "culprit", "long_call", "last_error"), "")}
    row |= {"task_id": task_id, "component": component, "kind": "bolt", "container_id": 1, "pid": 7, "state": "running"}
    row |= {"restarts": 0, "rate_per_s": 1000.0, "emit_per_s": 0.0, "queue_bytes": 100.0, "latency_p50_s": 1e-5}
    row |= {"latency_p99_s": 1e-3, "busy": 0.1, "time": {}, "cores": 0.1, "resident_bytes": 33.0 * 2**20}
    return {**row, "gc_share": 0.0, "shows_tuples": False, **changes}


def node_of(name: str, *, leaks: bool) -> dict[str, object]:
    """A component of two tasks, one of which may leak: a node of the API."""
    node: dict[str, object] = {"name": name, "kind": "bolt", "parallelism": 2, "running": 2, "rate_per_s": 1e6}
    node |= {"queue_bytes": 10, "latency_s": 1e-5, "failed": 0, "busy": 0.2, "busy_most": 0.2, "busy_from": "task-time"}
    node |= {
        "emit_per_s": 0.0,
        "time": {},
        "culprits": [],
        "causes": [],
        "held_back_by": [],
        "restarts": 0,
        "errors": 0,
    }
    most = 84.0 if leaks else 33.0
    sizes = {"resident_bytes": (33.0 + most) * 2**20, "resident_bytes_most": most * 2**20}
    return {**node, **sizes, "resident_bytes_others": 33.0 * 2**20}
