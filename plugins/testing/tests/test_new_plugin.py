"""A new plugin is written whole or not at all, and what cannot be one is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from heron.errors import PluginError
from heron_cli.main import heron
from heron_testing.scaffold.new_plugin import new_plugin
from heron_testing.scaffold.plugin_names import PluginNames


def test_one_rule_gives_the_names() -> None:
    """A name of two words has a hyphen for people and an underscore for Python."""
    names = PluginNames("statemgr", "my-etcd", "StateManager")
    assert (names.folder, names.distribution, names.package) == (
        "statemgr-my-etcd",
        "heron-statemgr-my-etcd",
        "heron_statemgr_my_etcd",
    )
    assert (names.group, names.driver) == ("heron.statemgr", "MyEtcdStateManager")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-",
        "--help",
        "Etcd",
        "3d",
        "a--b",
        "a-",
        "-a",
        "a_b",
        "a b",
        "../a",
        "a/b",
        "a.b",
        "ä",
        "a\n",
        "a$b",
        "a" * 41,
    ],
)
def test_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    """It becomes a folder, a distribution, a module and a class; each has characters that the others forbid."""
    with pytest.raises(PluginError, match="cannot be the name of a plugin"):
        new_plugin("statemgr", name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_unknown_family_is_refused_with_the_nearest(tmp_path: Path) -> None:
    """Most are typing mistakes; the list says what there is."""
    with pytest.raises(PluginError, match=r"'statmgr' \(nearest: 'statemgr'\); known: .*'scheduler'"):
        new_plugin("statmgr", "etcd", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    """Somebody's work of days may be in it."""
    folder = new_plugin("statemgr", "etcd", tmp_path)
    (folder / "README.md").write_text("mine")
    with pytest.raises(PluginError, match=r"statemgr-etcd is there already"):
        new_plugin("statemgr", "etcd", tmp_path)
    assert (folder / "README.md").read_text() == "mine"


def test_dangling_link_is_left_alone(tmp_path: Path) -> None:
    """It does not exist, says the system, and yet it is somebody's."""
    (tmp_path / "statemgr-etcd").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PluginError, match="is there already"):
        new_plugin("statemgr", "etcd", tmp_path)


def test_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    """A mistyped --into must not make a tree of folders."""
    with pytest.raises(PluginError, match=r"nowhere is no folder"):
        new_plugin("statemgr", "etcd", tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_place_that_cannot_be_written_is_named() -> None:
    """No permission and no space look alike here: the system's reason is in the message."""
    with pytest.raises(PluginError, match=r"cannot write /proc/statemgr-etcd: .*--into"):
        new_plugin("statemgr", "etcd", Path("/proc"))


def test_modes_are_those_that_the_umask_gives(tmp_path: Path) -> None:
    """It is a source tree like any other: the group may read it where the user lets it."""
    before = os.umask(0o027)
    try:
        folder = new_plugin("statemgr", "etcd", tmp_path)
    finally:
        os.umask(before)
    assert (folder.stat().st_mode & 0o777, (folder / "README.md").stat().st_mode & 0o777) == (0o750, 0o640)
    assert [path.name for path in tmp_path.iterdir()] == ["statemgr-etcd"]


def test_killed_midway_leaves_nothing_half_written(tmp_path: Path) -> None:
    """kill -9 while it writes: the plugin is not there, and the next try goes through."""
    script = (
        "import signal, os, sys, pathlib\n"
        "from heron_testing.scaffold.new_plugin import new_plugin\n"
        "def killed(event, arguments):\n"
        "    if event == 'open' and 'py.typed' in str(arguments[0]):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.addaudithook(killed)\n"
        "new_plugin('statemgr', 'etcd', pathlib.Path(sys.argv[1]))\n"
    )
    process = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert [path.name[0] for path in tmp_path.iterdir()] == ["."]
    assert (new_plugin("statemgr", "etcd", tmp_path) / "pyproject.toml").is_file()


def test_command_writes_here_and_says_what_is_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two lines that it prints are the next two that its author types."""
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(heron, ["plugins", "new", "packing", "tight"])
    assert ran.exit_code == 0
    assert (tmp_path / "packing-tight" / "src" / "heron_packing_tight" / "driver.py").is_file()
    assert "pip install -e packing-tight" in ran.output
    assert "python -m pytest packing-tight" in ran.output


def test_command_refuses_with_exit_code_2(tmp_path: Path) -> None:
    """One line, no traceback, and the code of everything that was asked wrongly."""
    ran = CliRunner().invoke(heron, ["plugins", "new", "packer", "tight", "--into", str(tmp_path)])
    assert (ran.exit_code, ran.output.count("\n")) == (2, 1)
    assert "heron: error: no plugin family 'packer' (nearest: 'packing')" in ran.output
