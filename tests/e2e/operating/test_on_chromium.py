"""`heron ui` in a real browser: a slow bolt, a leak, the end, a lost server, actions, a phone, the keyboard."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from playwright.sync_api import Error, Page, ViewportSize, expect

from heron_testing.waiting import wait_until
from heron_testing_servers.chromium import ChromiumBrowser
from watched_pages import HOSTILE, WatchedPage, answering, start_ui

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

FRAME = (
    """[...document.querySelectorAll("h1, .summary dl, nav.tabs, main h2")].map((each) => each.tagName).slice(0, 4)"""
)
PICTURES = Path(__file__).resolve().parents[3] / "docs" / "images"
SIZE = ViewportSize(width=1180, height=760)  # of a picture
MOST_BYTES = 150_000
VIEWS = (
    "",
    "/tasks",
    "/timelines",
    "/traces",
    "/checkpoints",
    "/containers",
    "/plans",
    "/problems",
    "/health",
    "/task/3",
    "/process/stmgr-1",
)


@pytest.fixture
def watched(chromium: ChromiumBrowser) -> Iterator[WatchedPage]:
    """A new page of 1280 pixels."""
    page = WatchedPage(chromium)
    yield page
    page.close()


def _shows_the_call(page: Page) -> bool:
    """Whether the stack is that of the wait; a task is in other lines too, so the page asks once more if it is not."""
    if "in Price.ask_for_the_price" in page.locator(".frames li.user").last.inner_text():
        return True
    with page.expect_response("**/tasks/3/stack"):
        page.get_by_role("link", name="Show its line").first.click()
    return False


def test_a_person_comes_from_the_list_to_the_line_of_a_slow_bolt(
    sandbox: Sandbox, chromium: ChromiumBrowser, watched: WatchedPage
) -> None:
    """By links alone; each view has no serious fault, at both widths and in both themes. Then the topology ends.

    The pictures of docs/ui.md are taken on the way; `./dev pictures` keeps them.
    """
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
    picture(page, "graph")
    page.locator("a.node.culprit").click()
    expect(page.get_by_text("Task 3 holds the spouts back: the task is slow.")).to_be_visible()
    expect(page.locator(".squares a.culprit")).to_have_attribute("href", re.compile("/local/shop/task/3$"))
    page.locator(".summary .troubles").get_by_role("link", name="Show its line").click()  # the shortest way
    expect(page).to_have_url(f"{url}/local/shop/task/3/stack")
    wait_until(partial(_shows_the_call, page), 60.0, "the call in which the task waits")
    expect(page.locator(".frames li.user").last).to_contain_text("time.sleep(0.02)")
    expect(page.locator(".guilty").first).to_contain_text("shop.py, line")
    picture(page, "stack", ".guilty")
    with page.expect_response("**/tasks/3/stack"):
        page.get_by_role("link", name="Show its line").first.click()  # asks again
    profiled(page)
    assert watched.faults() == []
    profiled_together(watched, f"{url}/local/shop")
    explained(page, url)
    assert watched.faults() == []
    found_in_the_logs(page, url)
    assert watched.faults() == []

    in_trouble_at_each_size(chromium, f"{url}/local/shop")
    page.goto(f"{url}/local/shop/timelines")
    expect(page.locator(".chart canvas").first).to_be_visible()
    expect(page.get_by_role("cell", name="back-pressure-began").first).to_be_visible()
    picture(page, "timelines")
    enlarged(page)
    own_metric_by_time(page, f"{url}/local/shop")
    assert watched.faults() == []
    traced(page, f"{url}/local/shop/traces")

    (run.out / "stop").touch()
    expect(page.get_by_text("It has ended: these are its last values.")).to_be_visible()
    page.goto(f"{url}/")
    expect(page.locator(".state-finished")).to_be_visible()
    assert watched.complaints == []
    sandbox.heron("kill", "shop")  # removes what an ended topology leaves


def picture(page: Page, name: str, lowest: str = "h1") -> None:
    """Take a picture for the documents, down to an element, where they are wanted; it is small enough in any case."""
    whole = page.viewport_size
    page.set_viewport_size(SIZE)
    page.locator(lowest).first.evaluate("each => each.scrollIntoView({block: 'end'})")
    taken = page.screenshot()
    assert len(taken) < MOST_BYTES, f"the picture {name} has {len(taken)} bytes"
    if os.environ.get("HERON_PICTURES"):
        (PICTURES / f"ui-{name}.png").write_bytes(taken)
    page.set_viewport_size(whole or SIZE)


def in_trouble_at_each_size(chromium: ChromiumBrowser, topology: str) -> None:
    """Each view tells the trouble, in the same order, within its width, and without a serious fault."""
    for width, dark in product((1280, 390), (False, True)):
        watched = WatchedPage(chromium, width=width, dark=dark)
        for view in VIEWS:
            watched.page.goto(f"{topology}{view}")
            expect(watched.page.get_by_role("heading", level=2).first).to_be_visible()
            expect(watched.page.locator(".troubles").first).to_be_visible()
            assert watched.page.evaluate(FRAME) == ["H1", "DL", "NAV", "H2"], view
            assert watched.page.evaluate("document.documentElement.scrollWidth") <= width, (view, width)
            assert watched.faults() == [], (view, width, dark)
        assert watched.complaints == []
        watched.close()


def found_in_the_logs(page: Page, url: str) -> None:
    """A text is found in any case, and shown as it is."""
    page.get_by_role("link", name="Show the logs, and follow them").click()
    page.get_by_role("searchbox").fill("<B>PRICES")
    page.get_by_role("button", name="Find", exact=True).click()
    expect(page.locator(".log mark")).to_have_text("<b>prices")
    expect(page.locator(".log .line")).to_have_text("<b>prices</b> orders, slow: True")
    expect(page).to_have_url(f"{url}/local/shop/task/3/logs?search=%3CB%3EPRICES")


def profiled(page: Page) -> None:
    """The profile names the line first, with its source and its share of the whole time."""
    profile = page.locator(".observed", has=page.get_by_role("heading", name="Profile", exact=True))
    profile.get_by_label("Seconds").fill("2")
    profile.get_by_role("button", name="Show where its time goes").click()
    expect(profile.locator(".guilty")).to_contain_text(re.compile(r"(9\d|100) % of the time at .*shop\.py, line \d+"))
    expect(profile.locator(".guilty")).to_contain_text("time.sleep(0.02)")
    first = profile.get_by_role("region", name="Your lines").get_by_role("row").nth(1)
    expect(first).to_contain_text(re.compile(r"shop\.py, line \d+.*time\.sleep\(0\.02\).*(9\d|100) %.*\d+ %.*\d+ %"))


def profiled_together(watched: WatchedPage, topology: str) -> None:
    """All tasks of the component are sampled, and the line of the slow one is a part of their time."""
    page = watched.page
    page.goto(f"{topology}/tasks")
    of_price = page.locator("section.component", has=page.get_by_role("heading", name="price", exact=True))
    of_price.get_by_role("link", name="Where the time of its tasks goes").click()
    expect(page).to_have_url(f"{topology}/tasks?component=price&show=profile")
    profile = page.locator(".observed", has=page.get_by_role("heading", name="Profile of price"))
    profile.get_by_label("Seconds").fill("2")
    profile.get_by_role("button", name="Show where the time of its tasks goes").click()
    expect(profile).to_contain_text(re.compile(r"samples in [78]\.\d s of 4 tasks, summed up"))
    expect(profile.locator(".guilty")).to_contain_text("time.sleep(0.02)")
    calls = profile.locator("h4", has_text=re.compile("^Off a processor: it waits")).inner_text()
    assert 4 < float(calls.split()[-2]) < 9, "three idle tasks and the slow one"
    assert watched.faults() == []
    page.goto(f"{topology}/task/3")


def explained(page: Page, url: str) -> None:
    """The explanation leads to the task, and can be closed, also by the keyboard. Only what suffers is red."""
    button = page.get_by_role("button", name="Explain what suffers, and why")
    button.click()
    expect(page.locator(".explained .notice.bad").first).to_contain_text("price")
    expect(page.locator(".explained dt", has_text="why")).to_have_count(1)
    page.get_by_role("button", name="Close the explanation").click()
    expect(page.locator(".explained")).to_have_count(0)
    expect(button).to_be_focused()
    place = "/clusters/local/topologies/shop"
    text = "nothing suffers, but price has more tasks than its load needs"
    spare: dict[str, object] = {"what": text, "why": ["a reason"], "subject": "price", "gravity": 0.0}
    spare |= {"since_s": None, "ruled_out": [], "action": "", "command": ""}
    slow = {**spare, "what": HOSTILE, "subject": "price/3", "gravity": 80.0}
    answering(page, f"{place}/explanation", {"at_s": 1.0, "summary": [], "problems": [slow, spare], "unknown": []})
    button.click()
    expect(page.locator(".explained .notice")).to_have_count(2)
    expect(page.locator(".explained .notice.bad")).to_have_text(re.compile("hacked"))
    of_component = page.get_by_role("link", name="Show price", exact=True)
    expect(of_component).to_have_attribute("href", re.compile(r"/tasks\?component=price$"))
    page.keyboard.press("Escape")
    expect(page.locator(".explained")).to_have_count(0)
    button.press("Enter")
    page.get_by_role("link", name="Show price/3", exact=True).click()
    expect(page).to_have_url(f"{url}/local/shop/task/3")


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


def own_metric_by_time(page: Page, topology: str) -> None:
    """A metric of the author has a chart, and one of the engine. A page of a task or process leads there."""
    expect(page.locator(".chart figcaption").get_by_text("user/priced, sum of the tasks")).to_be_visible()
    page.goto(f"{topology}/task/2")
    page.get_by_role("link", name="user/priced").click()
    expect(page).to_have_url(f"{topology}/timelines?tasks=2&metric=user%2Fpriced")
    expect(page.get_by_label("Chart")).to_have_value("user/priced")
    page.goto(f"{topology}/task/3")
    page.get_by_role("link", name="consumed-bytes").click()
    expect(page).to_have_url(f"{topology}/timelines?tasks=3&metric=engine%2Fconsumed-bytes")
    expect(page.get_by_role("slider")).to_have_accessible_name(re.compile(r"Newest values: price/3 .*B/s$"))
    page.goto(f"{topology}/process/stmgr-1")
    page.get_by_role("region", name="Metrics of stmgr-1").get_by_role("link", name="cpu-seconds").click()
    expect(page).to_have_url(f"{topology}/timelines?process=stmgr-1&metric=engine%2Fcpu-seconds")
    expect(page.get_by_role("slider")).to_have_accessible_name(re.compile(r"Newest values: stmgr-1 [0-9.]+$"))


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
    page.get_by_role("combobox", name="Action").select_option("kill")
    expect(page.locator("form.action .notice.bad")).to_contain_text("The topology steady ends for good")
    expect(page.locator("button.danger")).to_have_text("Kill the topology")
    page.get_by_role("combobox", name="Action").select_option("update")
    page.get_by_role("spinbutton", name="Tasks").fill("3")
    expect(page.locator("form.action > .notice")).to_contain_text("has 1 task and would have 3: 2 tasks would start")
    expect(page.locator("button.danger")).to_have_count(0)
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
    page.goto(f"{url}/task/1")
    expect(page.get_by_text("The page of a run shows no logs")).to_contain_text("heron logs steady --task 1 --follow")
    expect(page.locator(".title .state-running")).to_be_visible()
    (run.out / "stop").touch()
    run.finished()
    expect(page.get_by_text(re.compile("^(It has ended: these are|The run has ended, or)"))).to_be_visible()
    expect(page.locator(".state-running")).to_have_count(0)
    with pytest.raises(Error, match="ERR_CONNECTION_REFUSED"):
        page.goto(url)


def test_the_page_of_a_run_does_not_look_alive_without_its_server(sandbox: Sandbox, watched: WatchedPage) -> None:
    """Whether the run has ended with it, as by Ctrl-C, is then not known; a state of before is no state of now."""
    run = sandbox.start("steady.py", "--ui")
    run.printed("page of this run: http://")
    (url,) = re.findall(r"page of this run: (http://\S+)", run.stderr)
    page = watched.page
    page.goto(f"{url}/task/1")
    expect(page.locator(".title .state-running")).to_be_visible()
    expect(page.locator("h2 .state-running")).to_be_visible()
    children = psutil.Process(run.process.pid).children()
    (server,) = [each for each in children if each.status() != psutil.STATUS_ZOMBIE and "--of-run" in each.cmdline()]
    server.kill()
    told = page.get_by_text("The run has ended, or its page has failed: the server of these pages")
    expect(told).to_contain_text(re.compile(r"These values are \d+ s old\.$"))
    expect(page.locator(".title .state")).to_have_text("was running")
    expect(page.locator("h2 .state")).to_have_text("was running")
    expect(page.locator(".state-running")).to_have_count(0)
    assert watched.faults() == []
    (run.out / "stop").touch()
    run.finished()
