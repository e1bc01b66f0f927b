"""heron-core where nothing else is: what it brings, and what it says when a plugin is wanted."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "heron-core"
UV = (sys.executable, "-m", "uv")
CONSTRAINTS = str(ROOT / "constraints.txt")

# What heron-core's own dependencies need in turn: rich's markdown and colours. A new one costs every user.
IN_TURN = {"markdown-it-py", "mdurl", "pygments"}

Heron = Callable[..., "subprocess.CompletedProcess[str]"]


def run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=100, check=False)


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with heron-core's wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("alone")
    python = str(folder / "venv" / "bin" / "python")
    for command in (
        (*UV, "build", "-q", "--wheel", "-b", CONSTRAINTS, "--out-dir", str(folder), str(CORE)),
        (*UV, "venv", "-q", "--python", sys.executable, str(folder / "venv")),
    ):
        assert run(*command).returncode == 0, command
    (wheel,) = map(str, folder.glob("*.whl"))
    installed = run(*UV, "pip", "install", "-q", "--python", python, "-c", CONSTRAINTS, wheel)
    assert installed.returncode == 0, installed.stderr
    return folder / "venv"


@pytest.fixture
def heron(venv: Path, tmp_path: Path) -> Heron:
    """The command of that environment, called in an empty folder."""
    return lambda *arguments: run(str(venv / "bin" / "heron"), *arguments, cwd=tmp_path)


def test_core_brings_its_own_dependencies_and_nothing_else(venv: Path) -> None:
    """Each costs every process and every user; drivers and their libraries are plugins."""
    listed = run(*UV, "pip", "list", "--format", "json", "--python", str(venv / "bin" / "python"))
    installed = {each["name"].lower() for each in json.loads(listed.stdout)}
    declared = tomllib.loads((CORE / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    names = {re.split(r"[^A-Za-z0-9_.-]", each)[0].lower() for each in declared}
    assert installed == {"heron-core"} | names | IN_TURN


def test_without_plugins_the_list_says_what_to_install(heron: Heron) -> None:
    """The first thing that somebody meets who installed the core by its name."""
    listed = heron("plugins", "list")
    assert listed.returncode == 0, listed.stderr
    assert "pip install heron-bundle-local" in listed.stdout


def test_a_run_without_plugins_names_the_missing_driver(heron: Heron) -> None:
    """One line with the command that mends it, and no traceback."""
    ran = heron("run", str(ROOT / "examples" / "word_count.py"))
    assert ran.returncode == 2
    assert "`pip install heron-" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_new_plugin_needs_the_extra_for_tests(heron: Heron, tmp_path: Path) -> None:
    """The scaffold's tests would not even start without pytest; better said before anything is written."""
    made = heron("plugins", "new", "statemgr", "etcd")
    assert made.returncode == 2
    assert "need pytest and hypothesis: `pip install 'heron-core[testing]'`" in made.stderr
    assert list(tmp_path.iterdir()) == []
