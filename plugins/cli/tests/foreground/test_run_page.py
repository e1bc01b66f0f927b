"""The child process of `heron run --ui`, with other programs in its place."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from heron.driver_kit.child_processes import spawn
from heron.errors import PluginError
from heron_cli.foreground import run_page
from heron_cli.foreground.run_page import RunPage, check_ui_installed, ui_command
from heron_cli.profiles.overrides import parse_overrides
from heron_cli.topologies.environment import ProfileChoice

SERVES = "import signal; print('heron: ui at http://127.0.0.1:7/ui/', flush=True); signal.pause()"
FAILS = "print('heron: error: no such profile')"


def page_of(program: str) -> RunPage:
    """The page that a program serves."""
    return RunPage(spawn([sys.executable, "-c", program], stdout=subprocess.PIPE), "my profile")


def test_the_command_sees_what_the_run_sees() -> None:
    """Another state manager by --set would be an empty page."""
    overrides = parse_overrides(("statemgr.root=/x", "topology.stmgrs=3"))
    words = ui_command(ProfileChoice("far", Path("/profiles"), overrides, ("file",)), Path("/history"))
    assert words[4:] == [
        *("ui", "--of-run", "--address", "127.0.0.1:0", "--tuples", "--profile", "far", "--history", "/history"),
        *("--config-path", "/profiles"),
        *("--set", "statemgr.root=/x", "--without", "file"),
    ]


@pytest.mark.leaks_nothing
def test_the_address_of_the_page_is_announced() -> None:
    """It leads to the topology, whose names are encoded."""
    page = page_of(SERVES)
    try:
        expected = "heron: page of this run: http://127.0.0.1:7/ui/my%20profile/words"
        assert page.announcement("words") == expected
    finally:
        page.close()
        page.close()


@pytest.mark.leaks_nothing
def test_the_page_of_a_run_has_its_own_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """A `heron ui` that runs already records into the usual folder, and only one can. Nothing is left of the run's."""
    folders: list[Path] = []

    def started(words: Sequence[str]) -> subprocess.Popen[bytes]:
        folders.append(Path(words[words.index("--history") + 1]))
        return spawn([sys.executable, "-c", SERVES], stdout=subprocess.PIPE)

    monkeypatch.setattr(run_page, "_started", started)
    with RunPage.serving(ProfileChoice()) as page:
        assert page.announcement("words")
        assert folders[0].is_dir()
    assert not folders[0].exists()


@pytest.mark.leaks_nothing
def test_a_page_that_does_not_start_is_a_warning_with_the_reason() -> None:
    """The run goes on without it."""
    page = page_of(FAILS)
    try:
        expected = "heron: warning: there is no page of this run: heron: error: no such profile"
        assert page.announcement("words") == expected
    finally:
        page.close()


def test_without_the_distribution_the_command_to_install_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started before that is known."""
    monkeypatch.setattr("heron_cli.foreground.run_page.has_command", lambda _: False)
    with pytest.raises(PluginError, match="`pip install heron-service-ui`"):
        check_ui_installed()
