"""`heron ui` in a real browser: a slow bolt, the end, hostile texts, a lost server, a phone, the keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Error, Page, Route, expect
from watched_pages import WAIT_MS, WatchedPage, start_ui

from heron.clock import wall_s
from servers.chromium import ChromiumBrowser

if TYPE_CHECKING:
    from conftest import Sandbox

HOSTILE = "<script>window.hacked=1</script>" + "\u202e" + "x" * 168
FRAME = (
    """[...document.querySelectorAll("h1, .summary dl, nav.tabs, main h2")].map((each) => each.tagName).slice(0, 4)"""
)
VIEWS = ("", "/tasks", "/timelines", "/traces", "/containers", "/plans", "/problems", "/health", "/task/3")


@pytest.fixture
def watched(chromium: ChromiumBrowser) -> Iterator[WatchedPage]:
    """A new page of 1280 pixels."""
    page = WatchedPage(chromium)
    yield page
    page.close()


def answering(page: Page, path: str, document: object) -> None:
    """Let the page see this document as the answer of a path of the API."""

    def fulfil(route: Route) -> None:
        route.fulfill(body=json.dumps(document), content_type="application/json")

    page.route(re.compile(rf"/api/v1{path}(\?.*)?$"), fulfil)


def test_a_person_comes_from_the_list_to_the_line_of_a_slow_bolt(
    sandbox: Sandbox, chromium: ChromiumBrowser, watched: WatchedPage
) -> None:
    """By links alone; on the way each view has no serious fault in both themes. Then the topology ends."""
    run = sandbox.run("shop.py", command="submit local")  # its last report stays, unlike that of `heron run`
    _, url = start_ui(sandbox)
    page = watched.page
    page.goto(f"{url}/")
    expect(page.get_by_role("cell", name="price/3 holds its spouts back: the task is slow")).to_be_visible()
    assert watched.faults() == []
    page.get_by_role("link", name="shop").click()
    expect(page.locator("a.node.culprit")).to_contain_text("back pressure by task 3")
    expect(page.locator("a.node.held")).to_contain_text("orders")
    expect(page.locator("a.node.held")).to_contain_text("held back by price")
    assert page.locator(".edge").count() == 2
    page.locator("a.node.culprit").click()
    expect(page.get_by_text("Task 3 holds the spouts back: the task is slow.")).to_be_visible()
    page.locator(".squares a.culprit").click()
    expect(page).to_have_url(f"{url}/local/shop/task/3")
    page.get_by_role("button", name="Show what each thread does now").click()
    expect(page.locator(".frames li.user").last).to_contain_text("in Price.ask_for_the_price")
    expect(page.locator(".frames li.user").last).to_contain_text("time.sleep(0.02)")
    expect(page.locator(".guilty").first).to_contain_text("shop.py, line")
    assert watched.faults() == []

    page.get_by_role("button", name="Explain what suffers, and why").click()
    expect(page.locator(".explained")).to_contain_text("price")
    expect(page.locator(".explained dt", has_text="why")).to_have_count(1)
    assert watched.faults() == []

    page.get_by_role("link", name="Show the logs, and follow them").click()
    page.get_by_role("searchbox").fill("<B>PRICES")
    page.get_by_role("button", name="Find", exact=True).click()
    expect(page.locator(".log mark")).to_have_text("<b>prices")
    expect(page.locator(".log .line")).to_have_text("<b>prices</b> orders, slow: True")
    expect(page).to_have_url(f"{url}/local/shop/task/3/logs?search=%3CB%3EPRICES")
    assert watched.faults() == []

    dark = WatchedPage(chromium, dark=True)
    for view in VIEWS:
        for each in (watched, dark):
            each.page.goto(f"{url}/local/shop{view}")
            expect(each.page.get_by_role("heading", level=2).first).to_be_visible()
            expect(each.page.locator(".troubles").first).to_be_visible()
            assert each.page.evaluate(FRAME) == ["H1", "DL", "NAV", "H2"], view
            assert each.faults() == [], view
    page.goto(f"{url}/local/shop/timelines")
    expect(page.locator(".chart canvas").first).to_be_visible()
    expect(page.get_by_role("cell", name="back-pressure-began")).to_be_visible()
    enlarged(page)
    traced(page, f"{url}/local/shop/traces")

    (run.out / "stop").touch()
    expect(page.get_by_text("It has ended: these are its last values.")).to_be_visible()
    page.goto(f"{url}/")
    expect(page.locator(".state-finished")).to_be_visible()
    assert watched.complaints + dark.complaints == []
    dark.close()
    sandbox.heron("kill", "shop")  # removes what an ended topology leaves


def traced(page: Page, url: str) -> None:
    """The traces say that the time goes in front of the slow bolt."""
    page.goto(url)
    expect(page.locator(".waterfall tr.critical rect").first).to_be_attached()
    expect(page.get_by_role("row", name=re.compile("^(queue|outlet) .*price")).first).to_be_visible()


def test_a_person_finds_the_line_of_a_leak_and_sees_tuples(
    sandbox: Sandbox, chromium: ChromiumBrowser, watched: WatchedPage
) -> None:
    """By the buttons of the task's page, without a login on its machine; each answer has no serious fault."""
    run = sandbox.start("leaking.py")
    _, url = start_ui(sandbox, "--tuples")
    page = watched.page
    page.goto(f"{url}/")
    page.get_by_role("link", name="leaking").click()
    page.get_by_role("link", name="Tasks", exact=True).click()
    page.locator(".squares a").nth(1).click()
    expect(page.get_by_role("heading", level=2)).to_contain_text("leak/2")
    memory = page.locator(".observed", has=page.get_by_role("heading", name="Memory", exact=True))
    memory.get_by_label("Seconds").fill("2")
    memory.get_by_role("button", name="Show what its memory holds").click()
    expect(memory.locator(".guilty")).to_contain_text("leaking.py, line")
    expect(memory.locator(".guilty")).to_contain_text("self.seen.append(")
    expect(memory.get_by_role("row", name=re.compile(r"self\.seen list"))).to_be_visible()
    expect(memory.get_by_role("row", name=re.compile(r"bytearray self\.image"))).to_be_visible()

    tuples = page.locator(".observed", has=page.get_by_role("heading", name="Tuples", exact=True))
    tuples.get_by_role("button", name="Show the next tuples").click()
    expect(tuples.locator("caption").first).to_have_text("Stream default of visits")
    expect(tuples.locator("code", has_text="password=(hidden)").first).to_be_visible()

    profile = page.locator(".observed", has=page.get_by_role("heading", name="Profile", exact=True))
    profile.get_by_label("Seconds").fill("2")
    profile.get_by_role("button", name="Show where its time goes").click()
    expect(profile.locator(".flame g title", has_text="BoltRunner.work").first).to_be_attached()
    with page.expect_download() as download:
        profile.get_by_role("button", name="Download for speedscope").click()
    assert download.value.suggested_filename == "leaking-2.speedscope.json"
    assert json.loads(download.value.path().read_bytes())["name"] == "leaking: leak/2"
    assert watched.faults() == []

    page.goto(f"{url}/local/leaking/task/1")  # a component whose tuples are not shown
    expect(page.get_by_role("heading", name="Memory", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="Tuples", exact=True)).to_have_count(0)

    phone = WatchedPage(chromium, width=360, dark=True)
    phone.page.goto(f"{url}/local/leaking/task/2")
    phone.page.get_by_label("Seconds").nth(1).fill("0")
    phone.page.get_by_role("button", name="Show what its memory holds").click()
    expect(phone.page.get_by_role("heading", name="What holds memory")).to_be_visible()
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert phone.faults() == []
    assert watched.complaints + phone.complaints == []
    phone.close()
    (run.out / "stop").touch()
    sandbox.output_of("kill", "leaking")
    run.wait()


def enlarged(page: Page) -> None:
    """Drag over a chart: all of them show that part, which is in the URL; a double-click shows all again."""
    charts = page.locator(".chart .u-over")
    expect(charts.nth(1)).to_be_visible()
    box = charts.first.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.3 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], middle, steps=5)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"/timelines\?from=\d+&to=\d+$"))
    expect(page.get_by_role("button", name="Show all")).to_be_visible()
    expect(charts.nth(1)).to_be_visible()
    charts.nth(1).dblclick()
    expect(page).to_have_url(re.compile(r"/timelines$"))


def test_decisions_and_errors_are_shown_with_their_reasons(sandbox: Sandbox, watched: WatchedPage) -> None:
    """A decision has cause, evidence and reason; errors of one line are one group; both are marked by time."""
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
    page_of = {"total": 1, "next_offset": None, "age_s": 0.0, "error": ""}
    answering(page, f"{place}/health", {"mode": "act", "paused": False, "problem": "", "items": [decision], **page_of})
    page.goto(f"{url}/local/steady/health")
    expect(page.locator(".decisions li")).to_contain_text("4 tasks for count")
    expect(page.locator(".decisions li")).to_contain_text("slow-task of " + HOSTILE[:20])
    expect(page.locator(".decisions li")).to_contain_text("count/2 is busy 98 % of the time; its host is idle")
    assert watched.faults() == []

    error = {"component": "pass", "first_at_s": 1000.0, "exception": "ValueError", "place": "steady.py, line 9"}
    errors = [{**error, "task_id": number, "text": f"task {number} raised {HOSTILE}"} for number in (2, 3)]
    other = {"component": "", "task_id": 0, "text": "else", "first_at_s": None, "exception": "", "place": ""}
    answering(page, f"{place}/exceptions", {"items": [*errors, other], **page_of})
    page.goto(f"{url}/local/steady/problems")
    expect(page.locator(".errors > li")).to_have_count(2)
    expect(page.locator(".errors > li").first).to_contain_text("ValueError at steady.py, line 9")
    expect(page.locator(".errors > li").first).to_contain_text("pass, tasks 2, 3, 2 errors")
    assert page.evaluate("window.hacked") is None
    assert watched.faults() == []

    page.goto(f"{url}/local/steady/timelines")
    over = page.locator(".chart .u-over").first
    expect(over).to_be_visible()
    expect(page.locator(".at-cursor")).to_be_hidden()
    said = page.locator(".at-cursor", has_text="health manager, effective: 4 tasks for count")
    box = over.bounding_box()
    assert box is not None
    for at in range(int(box["width"]) - 1, 0, -3):  # where the mark is depends on the age of the topology
        page.mouse.move(box["x"] + at, box["y"] + 20)
        if said.is_visible():
            break
    expect(said).to_be_visible()
    (run.out / "stop").touch()
    run.finished()


def test_a_server_that_is_lost_leaves_grey_values_with_their_age(sandbox: Sandbox, watched: WatchedPage) -> None:
    """A page that looks alive would be believed."""
    run = sandbox.start("steady.py")
    ui, url = start_ui(sandbox)
    page = watched.page
    page.goto(f"{url}/local/steady")
    expect(page.locator("a.node")).to_have_count(3)
    expect(page.locator(".summary.old")).to_have_count(0)
    ui.process.kill()
    ui.wait(20.0)
    expect(page.locator(".summary.old")).to_have_count(1)
    expect(page.get_by_text(re.compile(r"These values are \d+ s old: the server"))).to_be_visible()
    (run.out / "stop").touch()
    run.finished()


def test_hostile_texts_are_shown_as_they_are(sandbox: Sandbox, watched: WatchedPage) -> None:
    """A name, an error and a cluster's message become text, whatever they contain; nothing leaves its place."""
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
        "trouble": [HOSTILE],
        "health": HOSTILE,
        "links": [],
        "age_s": 0.0,
        "error": "",
    }
    away = {"name": HOSTILE, "topologies": 0, "age_s": None, "error": HOSTILE}
    answering(page, "/topologies", {"items": [item], "total": 1, "next_offset": None, "away": [away], "age_s": 0.0})
    page.goto(f"{url}/")
    link = page.get_by_role("link", name=HOSTILE)
    expect(link).to_be_visible()
    assert link.get_attribute("href", timeout=WAIT_MS) is not None
    assert "<" not in str(link.get_attribute("href"))
    assert page.locator("main script").count() == 0
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    assert page.evaluate("window.hacked") is None
    assert watched.faults() == []


def test_a_topology_is_paused_with_the_token_and_its_name(sandbox: Sandbox, watched: WatchedPage) -> None:
    """The page asks for the token, and the button needs the name; the topology itself says that it is paused."""
    run = sandbox.start("steady.py")
    sandbox.environ["UI_TOKEN"] = "a-token-of-the-tests"
    _, url = start_ui(sandbox, "--allow-actions", "--token-env", "UI_TOKEN")
    page = watched.page
    page.goto(f"{url}/local/steady/actions")
    page.get_by_label("Token").fill("a-token-of-the-tests")
    page.get_by_role("button", name="Show the pages").click()
    expect(page.locator(".title .state-running")).to_be_visible()  # the server knows the topology
    button = page.get_by_role("button", name="Pause the spouts")
    expect(button).to_be_disabled()
    page.get_by_label("Repeat the name of the topology").fill("steady")
    assert watched.faults() == []
    button.click()
    expect(page.get_by_role("cell", name="it was running, and is paused")).to_be_visible()
    expect(page.locator(".title .state-paused")).to_be_visible()
    page.get_by_role("combobox", name="Action").select_option("activate")
    page.get_by_label("Repeat the name of the topology").fill("steady")
    page.get_by_role("button", name="Resume the spouts").click()
    expect(page.get_by_role("cell", name="it was paused, and is running")).to_be_visible()
    (run.out / "stop").touch()
    run.finished()


def test_a_phone_shows_every_view_within_its_width(sandbox: Sandbox, chromium: ChromiumBrowser) -> None:
    """Wide tables scroll by themselves; the page does not."""
    run = sandbox.start("steady.py")
    _, url = start_ui(sandbox)
    phone = WatchedPage(chromium, width=360)
    for view in VIEWS:
        phone.page.goto(f"{url}/local/steady{view}")
        expect(phone.page.get_by_role("heading", level=2).first).to_be_visible()
        assert phone.page.evaluate("document.documentElement.scrollWidth") <= 360, view
    phone.close()
    (run.out / "stop").touch()
    run.finished()


def test_heron_run_serves_its_page_until_it_ends(sandbox: Sandbox, watched: WatchedPage) -> None:
    """The keyboard suffices: Tab to a tab, and Enter. The server ends with the run."""
    run = sandbox.start("steady.py", "--ui")
    run.printed("page of this run: http://")
    (url,) = re.findall(r"page of this run: (http://\S+)", run.stderr)
    page = watched.page
    page.goto(url)
    expect(page.locator("a.node")).to_have_count(3)
    page.get_by_role("link", name="Graph").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{url}/tasks")
    expect(page.get_by_role("heading", name="Tasks", exact=True)).to_be_visible()
    (run.out / "stop").touch()
    run.finished()
    with pytest.raises(Error, match="ERR_CONNECTION_REFUSED"):
        page.goto(url)
