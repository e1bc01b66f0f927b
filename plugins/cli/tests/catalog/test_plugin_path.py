"""Plugins that are not installed, plugins that are switched off, and entry points of unknown groups."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from heron.errors import PluginError, UsageError
from heron_cli.catalog import plugin_path
from heron_cli.catalog.drivers import Drivers
from heron_cli.catalog.other_plugins import observer_entries
from heron_cli.catalog.plugin_path import add_plugin_path
from heron_cli.main import heron
from heron_cli.profiles import load_profile

if TYPE_CHECKING:
    from heron_testing.builders.distributions import Install

PROJECT = """
[project]
name = "heron-packing-mine"
version = "0.3"
[project.entry-points."heron.packing"]
mine = "mine_packing:Mine"
[project.entry-points."heron.statmgr"]
typo = "mine_packing:Mine"
"""
SOURCE = """
from heron_packing_roundrobin.packing import RoundRobinPacking
class Mine(RoundRobinPacking):
    pass
"""
OBSERVER = "class It:\n    def heron_plan_changed(self): ...\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of a plugin project that is not installed; its changes to this process are undone."""
    folder = tmp_path / "mine"
    (folder / "src").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "src" / "mine_packing.py").write_text(SOURCE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setenv("PYTHONPATH", "")
    yield folder
    sys.modules.pop("mine_packing", None)


def test_one_thread_at_a_time_changes_the_imports(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watches of a tracker open their clients together, and Python fails when two empty its caches."""
    locked: list[bool] = []
    monkeypatch.setattr(importlib, "invalidate_caches", lambda: locked.append(plugin_path._changing.locked()))
    add_plugin_path((project,))
    add_plugin_path(())  # it changes nothing
    assert locked == [True]


def test_an_observer_that_is_switched_off_is_not_shown_as_used(install: Install) -> None:
    """The check shows what a command with the same options uses."""
    install("heron-hooks-audit", "heron.hooks", "audit", OBSERVER)
    shown = CliRunner().invoke(heron, ["plugins", "check", "hooks", "audit", "--without", "hooks.audit"])
    assert "loads; switched off by --without" in shown.stdout
    assert "every command" not in shown.stdout


def test_a_project_is_found_by_every_spelling_of_its_name(project: Path) -> None:
    """The names of distributions ignore case, and treat `-`, `_` and `.` alike."""
    add_plugin_path([project])
    assert importlib.metadata.version("Heron_packing.mine") == "0.3"


def test_a_project_is_used_without_an_installation(project: Path) -> None:
    """Its drivers are found, and child processes can import them."""
    add_plugin_path([project])
    add_plugin_path([project])  # the second time changes nothing
    ref = Drivers().resolve("packing", "mine", {})
    assert ref.entry == "mine_packing:Mine"
    assert os.environ["PYTHONPATH"] == str(project / "src")
    (info,) = (each for each in Drivers().catalog("packing") if each.name == "mine")
    assert (info.distribution, info.version, info.source) == ("heron-packing-mine", "0.3", "path")


def test_a_broken_project_is_refused_with_its_file(project: Path) -> None:
    """The message names the file to correct."""
    (project / "pyproject.toml").write_text("[project")
    with pytest.raises(UsageError, match=r"--plugin-path: .*pyproject.toml cannot be read: "):
        add_plugin_path([project])


def test_a_mistyped_group_is_listed_as_broken(project: Path) -> None:
    """A plugin in an unknown group is otherwise never found."""
    words = ["--plugin-path", str(project), "plugins"]
    results = [CliRunner().invoke(heron, [*words, command, "--json"]) for command in ("list", "check")]
    for result in results:
        assert "entry-point group 'heron.statmgr' is unknown (nearest: 'heron.statemgr')" in result.output
    assert results[-1].exit_code == 2


def test_a_driver_that_is_switched_off_is_refused(profiles: Path) -> None:
    """The profile needs a driver of the family, so the user must name another one."""
    for name in ("roundrobin", "packing.roundrobin"):
        with pytest.raises(PluginError, match="packing driver 'roundrobin' is switched off by --without"):
            load_profile("here", Drivers(without=[name]).resolve, config_path=profiles)
    load_profile("here", Drivers(without=["uploader.roundrobin"]).resolve, config_path=profiles)


def test_a_sink_that_is_switched_off_is_left_out(profiles: Path) -> None:
    """A topology runs with the other sinks."""
    text = (profiles / "here.yaml").read_text()
    (profiles / "here.yaml").write_text(
        text.replace("metricsink: []", "metricsink: [{driver: prometheus}, {driver: file, directory: /tmp/x}]")
    )
    without = ["metricsink.prometheus"]
    profile = load_profile("here", Drivers(without=without).resolve, config_path=profiles, without=without)
    assert [each.name for each in profile.metricsinks] == ["file"]


def test_an_observer_that_is_switched_off_is_not_called(install: Install) -> None:
    """Neither by the command nor by processes of the run, which get their observers from the command."""
    entry = f"{install('obs-switched', 'heron.hooks', 'switched', OBSERVER)}:It"
    assert entry in observer_entries()
    assert entry not in observer_entries(["switched"])
    assert entry not in observer_entries(["hooks.switched"])


def test_an_observer_in_use_is_not_called_unused(install: Install, profiles: Path) -> None:
    """Every process calls an installed observer, whatever the profile says."""
    install("obs-used", "heron.hooks", "used", OBSERVER)
    words = ["plugins", "check", "hooks", "used", "--profile", "here", "--config-path", str(profiles)]
    result = CliRunner().invoke(heron, words)
    assert "works; every command and process calls it" in result.output
    assert result.exit_code == 0


SINK = """
from heron_metricsink_file.sink import FileSink
class It(FileSink):
    @classmethod
    def open(cls, options):
        raise ZeroDivisionError("it was opened")
"""


def test_profiles_check_opens_no_sink(install: Install, profiles: Path) -> None:
    """A sink that listens on a port would disturb the topologies that run."""
    install("heron-metricsink-eager", "heron.metricsink", "eager", SINK)
    text = (profiles / "here.yaml").read_text()
    (profiles / "here.yaml").write_text(text.replace("metricsink: []", "metricsink: [{driver: eager, directory: /x}]"))
    for options in ((), ("--offline",)):
        result = CliRunner().invoke(heron, ["profiles", "check", "here", "--config-path", str(profiles), *options])
        assert result.exit_code == 0, result.output
        assert "eager" in result.output
