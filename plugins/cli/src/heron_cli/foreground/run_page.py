"""``heron run --ui``: serves the page of the run by a child process, for as long as the run lasts.

The run does not depend on the page. The child is the command ``heron ui`` of another distribution, with the profile and
the settings of the run, at a free port of the loopback address. Its history is that of the run, in a folder of its own:
that of ``heron ui`` may be in use.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, cast
from urllib.parse import quote

from heron.clock import monotonic_s
from heron.driver_kit.child_processes import spawn
from heron.errors import PluginError
from heron_cli.command_entries import has_command
from heron_cli.topologies.environment import ProfileChoice

__all__ = ["RunPage", "check_ui_installed", "ui_command"]

_HERON = "from heron_cli.main import main; main()"
_READY = re.compile(r"ui at (http://\S+)")
_READY_S = 20.0  # a start takes a second or two, more on a machine that starts a topology
_STOP_S = 8.0  # the server ends its streams within 5 s


def check_ui_installed() -> None:
    """Raise `PluginError`, with the command that installs it, when the command ``heron ui`` is not installed."""
    if not has_command("ui"):
        msg = "--ui: the web UI is not installed: `pip install heron-service-ui`"
        raise PluginError(msg)


def ui_command(choice: ProfileChoice, history: Path) -> list[str]:
    """The command line of ``heron ui`` that shows the profile of a run as the run sees it. `history` is its folder.

    It shows tuples where the topology allows that, but no logs: every user of this machine reaches the page.
    """
    words = [sys.executable, "-P", "-c", _HERON, "ui", "--of-run", "--address", "127.0.0.1:0", "--tuples"]
    words += ["--profile", choice.name, "--history", str(history)]
    if choice.config_path is not None:
        words += ["--config-path", str(choice.config_path)]
    for key, value in choice.overrides.profile.items():
        words += ["--set", f"{key}={value}"]
    for each in choice.without:
        words += ["--without", each]
    return words


class RunPage:
    """The child process of one run; start it from the main thread."""

    def __init__(self, process: subprocess.Popen[bytes], profile: str) -> None:
        self._process = process
        self._profile = profile
        self._url = ""
        self._lines: list[str] = []
        self._known = threading.Event()
        self._reader = threading.Thread(target=self._read, name="page of the run", daemon=True)
        self._reader.start()

    @classmethod
    @contextmanager
    def serving(cls, choice: ProfileChoice) -> Iterator[RunPage]:
        """Serve until the block ends."""
        with TemporaryDirectory(prefix="heron-page-", ignore_cleanup_errors=True) as folder:
            page = cls(_started(ui_command(choice, Path(folder))), choice.name)
            try:
                yield page
            finally:
                page.close()

    def announcement(self, topology: str) -> str:
        """Return the line for the user, when the address is known: the page, or why there is none."""
        deadline_s = monotonic_s() + _READY_S
        while not self._known.wait(0.1) and monotonic_s() < deadline_s:
            if self._process.poll() is not None:
                self._reader.join(_STOP_S)
                break
        if self._url:
            return f"heron: page of this run: {self._url}{quote(self._profile, safe='')}/{quote(topology, safe='')}"
        why = self._lines[-1] if self._lines else f"it did not answer within {_READY_S:g} s"
        return f"heron: warning: there is no page of this run: {why}"

    def close(self) -> None:
        """End the process and wait for its end; idempotent."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        with cast("IO[bytes]", self._process.stdout) as lines:
            for line in lines:
                text = line.decode(errors="replace").strip()
                self._lines = [*self._lines[-20:], text]
                if found := _READY.search(text):
                    self._url = found[1]
                    self._known.set()


def _started(words: Sequence[str]) -> subprocess.Popen[bytes]:
    return spawn(words, stdout=subprocess.PIPE)
