"""A new plugin is written completely or not at all, and invalid requests are refused."""

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
    """A name of two words has a hyphen in the distribution and an underscore in the import package."""
    names = PluginNames("statemgr", "my-etcd", "StateManager")
    assert (names.folder, names.distribution, names.package) == (
        "statemgr-my-etcd",
        "heron-statemgr-my-etcd",
        "heron_statemgr_my_etcd",
    )
    assert (names.group, names.class_name) == ("heron.statemgr", "MyEtcdStateManager")


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
def test_invalid_name_is_refused(tmp_path: Path, name: str) -> None:
    """The name becomes a folder, a distribution, a module and a class; each forbids some characters."""
    with pytest.raises(PluginError, match="cannot be the name of a plugin"):
        new_plugin("statemgr", name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_unknown_family_is_refused_with_the_nearest(tmp_path: Path) -> None:
    """Most unknown families are typing mistakes; the message lists the families."""
    with pytest.raises(PluginError, match=r"'statmgr' \(nearest: 'statemgr'\); known: .*'scheduler'"):
        new_plugin("statmgr", "etcd", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    """The folder may hold days of work."""
    folder = new_plugin("statemgr", "etcd", tmp_path)
    (folder / "README.md").write_text("mine")
    with pytest.raises(PluginError, match=r"statemgr-etcd exists"):
        new_plugin("statemgr", "etcd", tmp_path)
    assert (folder / "README.md").read_text() == "mine"


def test_dangling_link_is_left_alone(tmp_path: Path) -> None:
    """The system reports that a dangling link does not exist, but the name is taken."""
    (tmp_path / "statemgr-etcd").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PluginError, match="exists"):
        new_plugin("statemgr", "etcd", tmp_path)


def test_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    """A mistyped --into must not create folders."""
    with pytest.raises(PluginError, match=r"nowhere is not a folder"):
        new_plugin("statemgr", "etcd", tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_place_that_cannot_be_written_is_named() -> None:
    """The message has the reason that the system gives, such as no permission or no space."""
    with pytest.raises(PluginError, match=r"cannot write /proc/statemgr-etcd: .*--into"):
        new_plugin("statemgr", "etcd", Path("/proc"))


def test_modes_are_those_that_the_umask_gives(tmp_path: Path) -> None:
    """A plugin is an ordinary source tree, so its modes follow the umask."""
    before = os.umask(0o027)
    try:
        folder = new_plugin("statemgr", "etcd", tmp_path)
    finally:
        os.umask(before)
    assert (folder.stat().st_mode & 0o777, (folder / "README.md").stat().st_mode & 0o777) == (0o750, 0o640)
    assert [path.name for path in tmp_path.iterdir()] == ["statemgr-etcd"]


def test_killed_midway_leaves_nothing_half_written(tmp_path: Path) -> None:
    """After SIGKILL during the write the plugin does not exist, and the next attempt succeeds."""
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


def test_command_writes_here_and_prints_the_next_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The author types the two printed commands next."""
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(heron, ["plugins", "new", "packing", "tight"])
    assert ran.exit_code == 0
    assert (tmp_path / "packing-tight" / "src" / "heron_packing_tight" / "driver.py").is_file()
    assert "pip install -e packing-tight" in ran.output
    assert "python -m pytest packing-tight" in ran.output


def test_command_refuses_with_exit_code_2(tmp_path: Path) -> None:
    """The command prints one line without a traceback, and exits with the code for wrong use."""
    ran = CliRunner().invoke(heron, ["plugins", "new", "packer", "tight", "--into", str(tmp_path)])
    assert (ran.exit_code, ran.output.count("\n")) == (2, 1)
    assert "heron: error: no scaffold for a plugin of family 'packer' (nearest: 'packing')" in ran.output


def test_command_writes_an_observer(tmp_path: Path) -> None:
    """Observers are a family of plugins too; the text names the test, because nothing fails."""
    ran = CliRunner().invoke(heron, ["plugins", "new", "hooks", "notes", "--into", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert (tmp_path / "hooks-notes" / "src" / "heron_hooks_notes" / "observer.py").is_file()
    assert f"wrote {tmp_path}/hooks-notes; these commands install it and show its test:" in ran.output


def test_compat_plugin_has_no_scaffold(tmp_path: Path) -> None:
    """A compat plugin serves a foreign package, so no contract tells what to write; the message lists the families."""
    with pytest.raises(PluginError, match=r"family 'compat'; known: .*'hooks'"):
        new_plugin("compat", "storm", tmp_path)


def test_lines_of_a_long_name_keep_their_limit(tmp_path: Path) -> None:
    """The longest name must pass the line limit of ruff as a short one does."""
    for family in ("statemgr", "hooks"):
        folder = new_plugin(family, "a" * 40, tmp_path)
        lines = [line for path in folder.rglob("*.py") for line in path.read_text().splitlines()]
        assert [line for line in lines if len(line) > 120] == []
