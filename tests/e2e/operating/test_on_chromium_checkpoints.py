"""Checkpoints and logs of the engine in a real browser: a topology that takes checkpoints, and a store that fails."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from heron_testing_servers.chromium import ChromiumBrowser
from watched_pages import WatchedPage, answering, start_ui

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

TOKEN = "a-token-of-the-tests"
NAME = "five_each"
ID = r"five_each-[0-9a-f]+"


@pytest.fixture
def pages(chromium: ChromiumBrowser) -> Iterator[tuple[WatchedPage, ...]]:
    """A page of 1280 pixels, and one of 390 pixels in dark colours."""
    found = WatchedPage(chromium), WatchedPage(chromium, width=390, dark=True)
    yield found
    for each in found:
        each.close()


def checkpointing(sandbox: Sandbox, interval_s: float) -> HeronRun:
    """Start a topology that takes checkpoints, of which 50 stay in the store, and wait for four."""
    arguments = ("--mode", "EFFECTIVELY_ONCE", "--interval", str(interval_s))
    run = sandbox.start("five_each.py", "--set", "heron.checkpoint.kept=50", args=arguments)
    sandbox.wait_for_state(run, NAME)
    run.until(lambda: int(sandbox.checkpoints(NAME)["complete"]) > 3, "four checkpoints")
    return run


def shown(watched: WatchedPage, url: str, name: str = "") -> None:
    """Open a view, or the list with a topology; give the token where it is asked for."""
    page = watched.page
    page.goto(url)
    field = page.get_by_label("Token")
    there = page.get_by_role("link", name=name, exact=True) if name else page.get_by_role("heading", level=2).first
    expect(field.or_(there).first).to_be_visible()
    if field.is_visible():
        field.fill(TOKEN)
        page.get_by_role("button", name="Show the pages").click()
    expect(there).to_be_visible()


def listed(pages: tuple[WatchedPage, ...], url: str, name: str) -> str:
    """Wait until the server knows the topology; return the URL of its page."""
    shown(pages[0], f"{url}/", name)
    return f"{url}/local/{name}"


def well_made(pages: tuple[WatchedPage, ...], url: str, text: str) -> None:
    """Open a view in both pages: it shows the text, has no serious fault, and is not wider than the page."""
    for each in pages:
        shown(each, url)
        expect(each.page.get_by_text(text).first).to_be_visible()
        assert each.faults() == [], url
        assert each.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), url


def ended(run: HeronRun, pages: tuple[WatchedPage, ...]) -> None:
    """Let the topology end; no script has failed, and the policy for content has refused nothing."""
    for each in pages:  # a young topology's plans are not known yet, which is an answer
        assert [text for text in each.complaints if not text.startswith("Failed to load resource")] == []
    (run.out / "stop").touch()
    run.finished()


def test_checkpoints_have_a_page_with_the_bytes_of_tasks_and_one_on_demand(
    sandbox: Sandbox, pages: tuple[WatchedPage, ...]
) -> None:
    """The restore point is in the store; the button needs the name, as that of every action."""
    run = checkpointing(sandbox, 1.0)
    sandbox.environ["UI_TOKEN"] = TOKEN
    _, url = start_ui(sandbox, "--allow-actions", "--token-env", "UI_TOKEN")
    well_made(pages, f"{listed(pages, url, NAME)}/checkpoints", "restore point")
    page = pages[0].page
    stored = page.get_by_role("region", name="Checkpoints in the store")
    expect(stored.get_by_role("row", name=re.compile("restore point"))).to_have_count(1)
    older = stored.get_by_role("link").nth(1)
    name = older.inner_text()
    older.click()
    tasks = page.get_by_role("region", name=f"Tasks of {name}")
    expect(tasks.get_by_role("row", name=re.compile(r"^keep.\d+ \d+ B \d+ B "))).to_be_visible()
    expect(page).to_have_url(re.compile(rf"/checkpoints\?of={ID}%2F\d+$"))
    expect(page.get_by_text(f"heron submit local FILE --from-checkpoint {name}", exact=True)).to_be_visible()
    seen = page.get_by_role("region", name="Complete and failed checkpoints")
    expect(seen.locator(".state-complete").nth(1)).to_be_visible()

    button = page.get_by_role("button", name="Take a checkpoint")
    expect(button).to_be_disabled()
    effect = page.locator("form.action p.notice").first
    expect(effect).to_have_text("The state of all tasks is stored. Data flows on, and nothing else changes.")
    page.get_by_label("Repeat the name of the topology").fill(NAME)
    button.click()
    expect(page.get_by_role("cell", name=re.compile(rf"^checkpoint {ID}.\d+ is complete$"))).to_be_visible()
    ended(run, pages)


def test_only_failures_of_checkpoints_are_on_other_pages(sandbox: Sandbox, pages: tuple[WatchedPage, ...]) -> None:
    """A checkpoint every half second makes four versions of the plan in a second; none of them is a mark or a row."""
    run = checkpointing(sandbox, 0.5)
    _, url = start_ui(sandbox)
    place, page = listed(pages, url, NAME), pages[0].page
    shown(pages[0], f"{place}/checkpoints")
    seen = page.get_by_role("region", name="Complete and failed checkpoints")
    expect(seen.locator(".state-complete").nth(2)).to_be_visible()

    folder = sandbox.home / ".heron" / "checkpoints"
    folder.rename(folder.with_name("away"))
    folder.write_text("no folder", encoding="utf-8")
    expect(seen.get_by_role("row", name=re.compile("failed.* cannot be stored")).first).to_be_visible()
    expect(page.get_by_text("The last failure: ")).to_be_visible()
    expect(page.locator(".summary .troubles a", has_text=re.compile("^checkpoint .* failed"))).to_be_visible()
    folder.unlink()
    folder.with_name("away").rename(folder)

    item: dict[str, object] = {
        **dict.fromkeys(("taken_at_s", "duration_s", "size_bytes", "written_bytes", "align_s", "tasks"), 0)
    }
    item |= {"damage": "", "unread": ""}
    items = [{**item, "id": "r/2", "damage": "torn"}, {**item, "id": "r/1", "unread": "slow"}]
    stored = {"items": items, "shown": "", "tasks": [], "age_s": 0.0, "error": ""}
    answering(page, f"/clusters/local/topologies/{NAME}/stored-checkpoints", stored)
    rows = page.get_by_role("region", name="Checkpoints in the store").get_by_role("row")
    expect(rows).to_contain_text(["checkpoint", "damaged: torn", "not read yet: slow"])

    for view, text in (("problems", "checkpoint-failed"), ("timelines", "checkpoint-failed")):
        well_made(pages, f"{place}/{view}", text)
        expect(page.get_by_role("cell", name="plan-changed")).to_have_count(0)
        expect(page.get_by_role("cell", name="checkpoint-completed")).to_have_count(0)
    well_made(pages, f"{place}/plans", "A version that only orders a checkpoint is not in the list.")
    assert page.get_by_role("region", name="Plan versions").get_by_role("row").count() < 8
    ended(run, pages)


def test_logs_of_each_kind_of_process_are_followed_and_saved_whole(
    sandbox: Sandbox, pages: tuple[WatchedPage, ...]
) -> None:
    """Links lead from the containers to them. New lines come by themselves, also after the file was rotated."""
    run = sandbox.start("steady.py")
    _, url = start_ui(sandbox)
    place, page = listed(pages, url, "steady"), pages[0].page
    for process in ("executor-0", "tmanager-0", "metricsmgr-0", "executor-1", "stmgr-1", "metricsmgr-1"):
        shown(pages[0], f"{place}/containers")
        kind, number = process.split("-")
        process_link(page, number, kind)
        expect(page).to_have_url(f"{place}/process/{process}")
        followed_and_saved(sandbox, page, process)
    page.get_by_role("searchbox").fill("no line has this")
    page.get_by_role("button", name="Find", exact=True).click()
    expect(page.get_by_text("No line has that text.")).to_be_visible()
    well_made(pages, f"{place}/process/stmgr-1", "Logs of stmgr-1")
    shown(pages[0], f"{place}/task/2/logs")
    followed_and_saved(sandbox, page, "pass-2")
    ended(run, pages)


def process_link(page: Page, container: str, kind: str) -> None:
    """Follow the link of a process in the card of its container."""
    card = page.locator(".card", has=page.get_by_role("heading", name=f"Container {container}"))
    card.get_by_role("link", name=kind, exact=True).click()


def followed_and_saved(sandbox: Sandbox, page: Page, name: str) -> None:
    """A line that is written while the page is open comes to its end, and the saved file has the older part too."""
    expect(page.get_by_role("log")).to_be_visible()  # a metrics manager without sinks has logged nothing yet
    (log,) = (sandbox.home / ".heron" / "logs").glob(f"*/{name}.log")
    older = log.with_name(f"{log.name}.1")
    older.write_bytes(log.read_bytes())
    log.write_text(record("the file begins again"), encoding="utf-8")  # as a full one does
    last = page.locator(".log .line").last
    expect(last).to_contain_text("the file begins again")
    with log.open("a", encoding="utf-8") as stream:
        stream.write(record("a new line") * 400)
    expect(last).to_contain_text("a new line")
    at_end = "each => each.scrollTop > 0 && each.scrollTop + each.clientHeight >= each.scrollHeight - 1"
    assert page.locator(".log").evaluate(at_end), "the newest line is on the screen"
    with page.expect_download() as saved:
        page.get_by_role("button", name=re.compile(rf"^{name}\.log, ")).click()
    assert saved.value.suggested_filename == f"{name}.log"
    found = saved.value.path().read_bytes()
    assert found.startswith(older.read_bytes())
    assert (record("the file begins again") + record("a new line")).encode() in found


def record(text: str) -> str:
    """A line of the engine, newer than all others."""
    return json.dumps({"at": "2099-01-01T00:00:00.000", "level": "info", "message": text}) + "\n"
