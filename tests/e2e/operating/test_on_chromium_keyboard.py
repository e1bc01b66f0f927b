"""Charts and flame graphs by keyboard, colours that change, addresses and titles, with answers that a test makes up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Locator, Page, expect

from heron.clock import wall_s
from heron_testing_servers.chromium import ChromiumBrowser
from watched_pages import HOSTILE, WatchedPage, answering, start_ui

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

PLACE = "/clusters/local/topologies/steady"
MIB = 2.0**20
LISTED = {"next_offset": None, "age_s": 0.0, "error": ""}
SHOWN = {"": "tbody tr", "local/steady": "a.node", "local/steady/timelines": ".chart canvas"}
"""The first values of a page; of the others it is a heading of their own."""
OTHERS = ("tasks", "traces", "checkpoints", "containers", "plans", "problems", "health", "task/2")
BUDGETS = {"file_bytes": 260_000, "files": 40, "answer_bytes": 50_000, "seconds": 1.0}
"""What a page may load and compute until its first values, of a topology with three tasks.

Each answer counts once, however often a busy machine lets the page ask. The history does not count: it grows.
"""
CHARTS = {"file_bytes": 400_000}  # which have a library
LOADED = """() => {
    const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    const bytes = (some) => some.reduce((sum, each) => sum + each.encodedBodySize, 0);
    const path = (each) => new URL(each.name).pathname;
    const asked = all.filter((each) => each.name.includes("/api/") && !path(each).endsWith("/history"));
    const answers = [...new Map(asked.reverse().map((each) => [path(each), each])).values()];
    const files = all.filter((each) => !each.name.includes("/api/"));
    return {files: files.length, file_bytes: bytes(files), answer_bytes: bytes(answers)};
}"""
DRAWN = """() => {
    const draw = CanvasRenderingContext2D.prototype.fillText;
    window.drawn = [];
    CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        window.drawn.push(text);
        return draw.call(this, text, ...place);
    };
}"""
AXIS_COLOUR = """each => {
    const pixels = each.getContext("2d").getImageData(0, 0, 60, each.height).data;
    let brightest = 0;
    for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] > 200) brightest = Math.max(brightest, pixels[at]);
    return brightest;
}"""


@pytest.fixture
def watched(chromium: ChromiumBrowser) -> Iterator[WatchedPage]:
    """A new page of 1280 pixels."""
    page = WatchedPage(chromium)
    yield page
    page.close()


def test_charts_and_flame_graphs_work_by_keyboard_and_everything_has_an_address(
    sandbox: Sandbox, chromium: ChromiumBrowser, watched: WatchedPage
) -> None:
    """One topology for all of it; the browser refuses nothing, and axe-core finds no serious fault."""
    run = sandbox.start("steady.py")
    _, url = start_ui(sandbox)
    place, page = f"{url}/local/steady", watched.page
    cursor_by_keyboard(page, place)
    assert watched.faults() == []
    colours_change_at_once(page)
    flame_by_keyboard(page, place, "task/2", "Show where its time goes")
    assert watched.faults() == []
    flame_by_keyboard(page, place, "tasks?component=pass&show=profile", "Show where the time of its tasks goes")
    expect(page.get_by_text("10 samples in 10.0 s of 2 tasks, summed up")).to_be_visible()
    expect(page.get_by_text("Not in it: task 4: the process has ended")).to_be_visible()
    assert watched.faults() == []
    trace_by_address(page, place)
    assert watched.faults() == []
    trouble_on_a_phone(chromium, url)
    pages_keep_their_budgets(chromium, url)
    (run.out / "stop").touch()
    run.finished()


def cursor_by_keyboard(page: Page, place: str) -> None:
    """The arrows read values out, in the chart and for a screen reader; the axis of bytes has whole steps."""
    end_s = int(wall_s()) // 10 * 10
    points = [{"at_s": end_s - 10 * back, "value": back * 2 * MIB, "most": back * 2 * MIB} for back in range(60, 0, -1)]
    series = [{"component": "count", "task_id": 0, "metric": "queue-bytes", "points": points}]
    times = {"start_s": end_s - 900, "end_s": end_s, "step_s": 10}
    answer = {**times, "series": series, "events": [], "age_s": 0.0, "error": "", "prometheus_error": ""}
    answering(page, f"{PLACE}/history", answer)
    page.add_init_script(f"({DRAWN})()")
    page.goto(f"{place}/timelines")
    expect(page).to_have_title(re.compile("^timelines . steady . Heron$"))
    expect(page.get_by_label("Place").get_by_role("link", name="steady")).to_have_attribute("href", "/ui/local/steady")
    chart = page.get_by_role("slider", name=re.compile("^Data that waits by time"))
    expect(chart.locator("canvas")).to_be_visible()
    sizes = [each for each in page.evaluate("window.drawn") if each.endswith("iB")]
    assert sizes, "the axis has labels"
    assert [each for each in sizes if not re.fullmatch(r"\d+(\.0+)? MiB", each)] == []
    chart.focus()
    page.keyboard.press("End")
    expect(chart).to_have_attribute("aria-valuetext", re.compile(r"count 2\.00 MiB$"))
    page.keyboard.press("ArrowLeft")
    expect(chart).to_have_attribute("aria-valuetext", re.compile(r"count 4\.00 MiB$"))
    expect(chart.locator(".u-legend .u-value").last).to_have_text("4.00 MiB")
    page.keyboard.press("Escape")
    expect(chart).not_to_have_attribute("aria-valuetext", re.compile("4"))


def colours_change_at_once(page: Page) -> None:
    """The texts of an axis are light on dark without loading the page again."""
    canvas = page.locator(".chart canvas").first
    assert canvas.evaluate(AXIS_COLOUR) < 200
    page.get_by_label("Colours").select_option("dark")
    expect(canvas).to_be_visible()
    page.wait_for_function(f"() => ({AXIS_COLOUR})(document.querySelector('.chart canvas')) > 200")
    page.get_by_label("Colours").select_option("auto")


def flame_by_keyboard(page: Page, place: str, view: str, button: str) -> None:
    """A call is enlarged by a click or by Enter, and everything is shown again by Escape."""
    of_component = view.startswith("tasks")
    names = ("run", "work", HOSTILE, "rare")
    frames = [{"function": name, "file": "steady.py", "line": 1, "origin": "user"} for name in names]
    stacks = [
        {"frames": [0, 1, 2], "samples": 9, "on_s": 9.0, "off_s": 0.0},
        {"frames": [0, 3], "samples": 1, "on_s": 1.0, "off_s": 0.0},
    ]
    profile: dict[str, object] = {"topology": "steady", "component": "pass", "task_id": 0 if of_component else 2}
    profile |= {"began_at_s": 1.0, "lasted_s": 10.0, "samples": 10, "other_on_s": 0.0}
    answer: dict[str, object] = {"profile": {**profile, "frames": frames, "stacks": stacks}, "lines": []}
    answer |= {"functions": [], "speedscope": {}, "task_ids": [2, 3] if of_component else []}
    answer["missing"] = ["task 4: the process has ended"] if of_component else []
    answering(page, f"{PLACE}/profile" if of_component else f"{PLACE}/tasks/2/profile", answer)
    page.goto(f"{place}/{view}")
    asks = page.get_by_role("button", name=button)
    if of_component:
        expect(asks).to_be_focused()  # as by the address of that of a task
    asks.click()
    graph = page.get_by_role("group", name=re.compile("^Flame graph: On a processor"))
    told = page.locator(".at-call").first
    expect(told).to_contain_text("all: 10.000 s, 100 %")
    rare = graph.locator("g", has=page.locator("title", has_text="rare (steady.py): 1.000 s, 10 %"))
    narrow = width_of(rare)
    graph.focus()
    for key, text in (("ArrowUp", "run"), ("ArrowUp", "work"), ("ArrowLeft", "rare"), ("Enter", "rare")):
        page.keyboard.press(key)
        expect(told).to_contain_text(f"{text} (steady.py)")
    assert width_of(rare) > 9 * narrow
    expect(graph.locator("g")).to_have_count(3)  # what has called it stays below
    page.keyboard.press("ArrowDown")
    expect(told).to_contain_text("run (steady.py): 10.000 s, 100 %")
    page.keyboard.press("Escape")
    expect(graph.locator("g")).to_have_count(5)
    rare.locator("rect").click()
    expect(graph.locator("g")).to_have_count(3)
    page.get_by_role("button", name="Show all calls").click()
    expect(graph.locator("g")).to_have_count(5)
    assert page.evaluate("window.hacked") is None


def width_of(box: Locator) -> float:
    """The width of a call in the graph."""
    expect(box).to_have_count(1)
    return float(box.locator("rect").get_attribute("width") or 0)


def trace_by_address(page: Page, place: str) -> None:
    """The chosen trace is in the URL; the columns of its waterfall keep their words whole."""
    step = {"component": "a_component_with_a_name", "task_id": 3, "kind": "execute", "depth": 2, "start_s": 0.1}
    step |= {"duration_s": 0.2, "critical_s": 0.2, "is_estimate": False, "source": ""}
    trace = {"component": "numbers", "task_id": 1, "duration_s": 0.4, "outcome": "complete", "missing": 0, "cut": False}
    traces = [{**trace, "trace_id": name, "at_s": 1000.0, "steps": [step]} for name in ("one", "two")]
    summary = {"traces": 2, "incomplete": 0, "p50_s": 0.4, "p99_s": 0.4, "hops": []}
    answer = {"summary": summary, "slowest": traces, "refused": 0, "age_s": 0.0, "error": ""}
    answering(page, f"{PLACE}/traces", answer)
    page.goto(f"{place}/traces")
    choice = page.get_by_role("combobox", name=re.compile("^Trace"))
    choice.select_option("two")
    expect(page).to_have_url(f"{place}/traces?trace=two")
    page.reload()
    expect(choice).to_have_value("two")
    task = page.locator(".waterfall td").first
    assert task.evaluate("each => each.getBoundingClientRect().width") >= 130
    page.goto(f"{place}/traces?trace=gone")
    expect(page.get_by_text("Trace gone is not among the slowest any more.")).to_be_visible()


def trouble_on_a_phone(chromium: ChromiumBrowser, url: str) -> None:
    """At 390 pixels, trouble and rate are on the screen, and a topology in trouble is not green."""
    phone = WatchedPage(chromium, width=390, dark=True)
    texts = dict.fromkeys(("id", "role", "env", "user", "health", "error"), "")
    trouble = {"kind": "back-pressure", "text": "price/3 holds its spouts back", "component": "price"}
    item: dict[str, object] = {**texts, "cluster": "local", "name": "steady", "state": "running", "since_s": 1.0}
    item |= {"containers": 1, "tasks": 1234, "spouts": [], "rate_per_s": 12_345.0, "culprits": 1, "errors": []}
    item |= {"trouble": [{**trouble, "task_id": 3, "container_id": 0}], "links": [], "age_s": 0.0}
    answering(phone.page, "/topologies", {"items": [item], "total": 1, "away": [], **LISTED})
    phone.page.goto(f"{url}/")
    expect(phone.page).to_have_title(re.compile("^Topologies . Heron$"))
    for text in ("price/3 holds its spouts back", "12.3 k/s"):
        box = phone.page.get_by_text(text).first.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 390, text
    state = phone.page.locator(".state-running")
    green = "getComputedStyle(document.documentElement).getPropertyValue('--good')"
    assert phone.page.evaluate(f"{green}.trim()") == "#8ad3a0"
    assert state.evaluate("each => getComputedStyle(each).color") == "rgb(255, 157, 157)"
    assert phone.faults() == []
    phone.close()


def pages_keep_their_budgets(chromium: ChromiumBrowser, url: str) -> None:
    """With an empty cache: the files, the first answers, and the processor time, which other work changes little."""
    for view in (*SHOWN, *(f"local/steady/{each}" for each in OTHERS)):
        watched = WatchedPage(chromium)
        session = watched.page.context.new_cdp_session(watched.page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        watched.page.goto(f"{url}/{view}")
        expect(watched.page.locator(SHOWN.get(view, "main h2")).first).to_be_visible()
        found = watched.page.evaluate(LOADED)
        measured = session.send("Performance.getMetrics")["metrics"]
        found["seconds"] = next(each["value"] for each in measured if each["name"] == "TaskDuration")
        budgets = {**BUDGETS, **(CHARTS if view.endswith("timelines") else {})}
        over = {name: found[name] for name, most in budgets.items() if found[name] > most}
        assert over == {}, f"{view or 'the list'}: {found}"
        assert found["files"] > 20, "the page has loaded its scripts"
        watched.close()
