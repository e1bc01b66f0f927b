"""A Chromium without a window, and axe-core, which finds faults of pages for people who do not see or use no mouse."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from heron_testing_servers.install import ServerNotInstalledError, debian_programs, installed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

__all__ = ["FIXTURES", "ChromiumBrowser"]

FIXTURES = ("chromium",)

_AXE = "axe-core@4.14.1"
_INSTALL_S = 120.0
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
        self.axe: Path = installed(_AXE, _packed_axe) / "package" / "axe.min.js"
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

        libraries = os.pathsep.join(sorted({str(each.parent) for each in self._place.rglob("*.so*")}))
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


def _packed_axe(folder: Path) -> None:
    """Unpack the npm package of axe-core; no script of it runs."""
    for command in (
        ["npm", "pack", "--silent", "--ignore-scripts", _AXE],
        ["tar", "-xzf", f"{_AXE.replace('@', '-')}.tgz"],
    ):
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_INSTALL_S)
        except (OSError, subprocess.SubprocessError) as error:
            msg = f"{' '.join(command)}: {error}"
            raise ServerNotInstalledError(msg) from error
