"""A Chromium without a window, and axe-core, which finds faults of pages for people who do not see or use no mouse."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from servers.install import debian_programs, installed, npm_package, with_libraries
from servers.serving import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

__all__ = ["FIXTURES", "ChromiumBrowser", "chromium"]

FIXTURES = ("chromium",)

_AXE = "axe-core@4.14.1"
_PACKAGES = ("chromium-headless-shell", "chromium-common", "fonts-dejavu-core")
_OPTIONS = (
    "--no-sandbox",  # root has none
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",  # it asks hosts of its maker otherwise
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


class ChromiumBrowser:
    """A browser, driven by Playwright; start it from the main thread, which then runs an event loop until `kill`."""

    def __init__(self) -> None:
        """Install Debian's Chromium, and axe-core, into the cache.

        Raises:
            ServerNotInstalledError: when one of them is not available.
        """
        self._place = installed("chromium-headless-debian", debian_programs(*_PACKAGES))
        self.axe: Path = installed(_AXE, npm_package(_AXE)) / "package" / "axe.min.js"
        """The script of axe-core."""
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    @property
    def browser(self) -> Browser:
        """The browser; make a context in it for each test."""
        assert self._browser is not None
        return self._browser

    def start(self) -> None:
        """Start it."""
        from playwright.sync_api import sync_playwright  # noqa: PLC0415  # only this suite needs it

        libraries = with_libraries(self._place)[1].partition("=")[2]
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(
            executable_path=self._place / "usr" / "lib" / "chromium" / "chromium-headless-shell",
            args=list(_OPTIONS),
            env={**os.environ, "LD_LIBRARY_PATH": libraries},
        )

    def kill(self) -> None:
        """End it, and the event loop; idempotent."""
        if self._browser is not None:
            self._browser.close()
        if self._playwright is not None:
            self._playwright.stop()
        self._browser = self._playwright = None


@pytest.fixture(scope="module")
def chromium(request: pytest.FixtureRequest) -> Iterator[ChromiumBrowser]:
    """A running Chromium, shared by the tests of a file, because its event loop keeps others from the main thread."""
    yield from serving("chromium", request.config, ChromiumBrowser)
