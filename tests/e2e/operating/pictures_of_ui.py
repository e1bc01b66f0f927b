"""Takes the pictures of docs/ui.md and the README, and measures how fast the pages appear: ``./dev pictures``.

The topology is that of the tests: one task of four is slow. Nothing here is a test of the pages.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import ViewportSize, expect

from heron_testing_servers.chromium import ChromiumBrowser
from watched_pages import WatchedPage, start_ui

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

ROOT = Path(__file__).resolve().parents[3]
PICTURES = ROOT / "docs" / "images"
TASKS = 1000
MOST_BYTES = 150_000
SIZE = ViewportSize(width=1180, height=760)
SEEN_MS = 45_000.0  # a picture of timelines needs time, and no event ends it
TIMES = """() => ({
    paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
    bytes: [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
        .filter((each) => !each.name.includes("/api/")).reduce((sum, each) => sum + each.encodedBodySize, 0),
    files: performance.getEntriesByType("resource").filter((each) => !each.name.includes("/api/")).length,
})"""


def picture(watched: WatchedPage, name: str) -> None:
    """Write what the page shows."""
    path = PICTURES / f"ui-{name}.png"
    watched.page.screenshot(path=path)
    assert path.stat().st_size < MOST_BYTES, f"{path} has {path.stat().st_size} bytes"


def shown(chromium: ChromiumBrowser, url: str, selector: str) -> dict[str, Any]:
    """Load a page with an empty cache; return its times in milliseconds, and the bytes and files that it loads."""
    page = WatchedPage(chromium)
    page.page.add_init_script(
        "new MutationObserver(() => { if (!window.shownAt && document.querySelector("
        f"{selector!r})) window.shownAt = performance.now(); }}).observe(document, {{childList: true, subtree: true}});"
    )
    page.page.goto(url)
    expect(page.page.locator(selector).first).to_be_visible()
    found: dict[str, Any] = page.page.evaluate(TIMES)
    found["values"] = page.page.evaluate("window.shownAt")
    page.close()
    return found


def test_pictures(sandbox: Sandbox, chromium: ChromiumBrowser) -> None:
    """The path of a person from the graph to the line, and the timelines."""
    run = sandbox.start("shop.py")
    _, url = start_ui(sandbox)
    watched = WatchedPage(chromium)
    page = watched.page
    page.set_viewport_size(SIZE)
    page.goto(f"{url}/local/shop")
    expect(page.locator("a.node.culprit")).to_be_visible()
    expect(page.locator(".edge text").first).to_contain_text("/s")
    page.wait_for_timeout(SEEN_MS)
    picture(watched, "graph")
    for path, selector in (("/", "tbody tr"), ("/local/shop", "a.node")):
        sys.stdout.write(f"\n/ui{path}: {shown(chromium, url + path, selector)}\n")
    page.goto(f"{url}/local/shop/timelines")
    expect(page.locator(".chart canvas").first).to_be_visible()
    picture(watched, "timelines")
    page.goto(f"{url}/local/shop/task/3")
    page.get_by_role("button", name="Show what each thread does now").click()
    expect(page.locator(".frames li.user").last).to_contain_text("time.sleep(0.02)")
    page.locator(".guilty").first.evaluate("each => each.scrollIntoView({block: 'end'})")
    picture(watched, "stack")
    watched.close()
    (run.out / "stop").touch()
    run.finished()


def test_how_fast_a_thousand_tasks_are_shown(sandbox: Sandbox, chromium: ChromiumBrowser) -> None:
    """With three pages open already. The topology has a plan and values, and no processes: one answers for it."""
    text = f"extends: local\nstatemgr:\n  driver: localfs\n  root: {sandbox.root / 'load'}\n"
    profile = sandbox.write_profile("load", text)
    words = [sys.executable, "-m", "bench.topologies_in_name_only", str(sandbox.root / "load"), "1", str(TASKS)]
    with subprocess.Popen(
        words, cwd=ROOT, env=sandbox.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as answering:
        assert answering.stdout is not None
        assert answering.stdout.readline() == "ready\n"
        _, url = start_ui(sandbox, *profile)
        first = WatchedPage(chromium)
        first.page.goto(f"{url}/")
        expect(first.page.get_by_role("cell", name=str(TASKS))).to_be_visible()
        others = [first, WatchedPage(chromium), WatchedPage(chromium)]
        for each in others:
            each.page.goto(f"{url}/load/load-00/tasks")
            expect(each.page.locator(".squares a")).to_have_count(TASKS)
        for path, selector in (("", "a.node"), ("/tasks", ".squares a"), ("/containers", ".chips a")):
            found = shown(chromium, f"{url}/load/load-00{path}", selector)
            sys.stdout.write(f"\n{TASKS} tasks{path}: {found}\n")
        for each in others:
            each.close()
        answering.communicate()
