"""A page of `heron ui` in a real browser, and what the browser complains about."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from playwright.sync_api import Page, Route, expect

from heron_testing_servers.chromium import ChromiumBrowser

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

__all__ = ["HOSTILE", "SHOWN", "WAIT_MS", "WatchedPage", "answering", "start_ui"]

SHOWN = "<script>window.hacked=1</script>" + "\ufffd" + "x" * 168  # what a page shows of it
HOSTILE = "<script>window.hacked=1</script>" + "\u202e" + "x" * 168
WAIT_MS = 60_000.0  # a topology that starts on a busy machine
AXE = """() => axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => `${each.id}: ${each.nodes.map((node) => node.html + node.failureSummary).join(" | ")}`))"""

expect.set_options(timeout=WAIT_MS)


class WatchedPage:
    """A page, and what the browser complained about: errors of scripts, and what the policy for content refused."""

    def __init__(self, chromium: ChromiumBrowser, *, width: int = 1280, dark: bool = False) -> None:
        self._context = chromium.browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
        )
        self._context.set_default_timeout(WAIT_MS)
        self._axe = chromium.axe.read_text(encoding="utf-8")
        self.page: Page = self._context.new_page()
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda told: self.complaints.append(told.text) if told.type == "error" else None)

    def faults(self) -> list[str]:
        """The serious findings of axe-core about what the page shows now."""
        self.page.evaluate(self._axe)
        found: list[str] = self.page.evaluate(AXE)
        return found

    def close(self) -> None:
        """Close the page."""
        self._context.close()


def start_ui(sandbox: Sandbox, *words: str) -> tuple[HeronRun, str]:
    """Start `heron ui`; return the command and the URL of its pages."""
    run = sandbox.start_command("ui", "--address", "127.0.0.1:0", "--period", "0.5", "--logs", *words)
    run.printed("ui at http://")
    (url,) = re.findall(r"ui at (http://\S+/ui)/", run.stderr)
    return run, url


def answering(page: Page, path: str, document: object) -> None:
    """Let the page see this document as the answer of a path of the API."""

    def fulfil(route: Route) -> None:
        route.fulfill(body=json.dumps(document), content_type="application/json")

    page.route(re.compile(rf"/api/v1{path}(\?.*)?$"), fulfil)
