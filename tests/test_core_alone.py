"""heron-core and heron-cli without any plugin: their dependencies, and their messages about a missing plugin."""

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

# Dependencies of heron-cli's dependencies: rich's markdown and colours. A new one costs every user.
IN_TURN = {"markdown-it-py", "mdurl", "pygments"}
COMMAND = ("cli", "simulator")

Heron = Callable[..., "subprocess.CompletedProcess[str]"]


def run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=100, check=False)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels of the core and the command."""
    folder = tmp_path_factory.mktemp("dist")
    for project in (CORE, *(ROOT / "plugins" / name for name in COMMAND)):
        # With the hatchling of this environment, which has the same pin.
        here = ("--no-build-isolation", "--python", sys.executable)
        built = run(*UV, "build", "-q", "--wheel", *here, "--out-dir", str(folder), str(project))
        assert built.returncode == 0, built.stderr
    return folder


def install(folder: Path, wheels: list[str]) -> Path:
    """Make a new environment with these wheels and their dependencies."""
    venv = folder / "venv"
    made = run(*UV, "venv", "-q", "--python", sys.executable, str(venv))
    assert made.returncode == 0, made.stderr
    python = str(venv / "bin" / "python")
    installed = run(*UV, "pip", "install", "-q", "--python", python, "-c", CONSTRAINTS, *wheels)
    assert installed.returncode == 0, installed.stderr
    return venv


@pytest.fixture(scope="module")
def venv(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the core and the command."""
    return install(tmp_path_factory.mktemp("command"), sorted(map(str, dist.glob("*.whl"))))


def declared(project: Path) -> set[str]:
    """Return the names of the dependencies in a project's pyproject.toml."""
    table = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.split(r"[^A-Za-z0-9_.-]", each)[0].lower() for each in table["dependencies"]}


def installed_names(venv: Path) -> set[str]:
    """Return the distributions of an environment."""
    listed = run(*UV, "pip", "list", "--format", "json", "--python", str(venv / "bin" / "python"))
    return {each["name"].lower() for each in json.loads(listed.stdout)}


@pytest.fixture
def heron(venv: Path, tmp_path: Path) -> Heron:
    """Call the command of that environment in an empty folder."""
    return lambda *arguments: run(str(venv / "bin" / "heron"), *arguments, cwd=tmp_path)


def test_core_installs_only_its_own_dependencies(dist: Path, tmp_path: Path) -> None:
    """A dependency costs every process and every user; drivers and their libraries are plugins."""
    venv = install(tmp_path, sorted(map(str, dist.glob("heron_core-*.whl"))))
    assert installed_names(venv) == {"heron-core"} | declared(CORE)
    assert not (venv / "bin" / "heron").exists()


def test_command_line_package_installs_the_dependencies_of_the_command(venv: Path) -> None:
    """Terminal, YAML and discovery are dependencies of the command and not of the core."""
    wanted = {name for folder in COMMAND for name in declared(ROOT / "plugins" / folder)}
    assert installed_names(venv) == {"heron-core", "heron-cli", "heron-simulator"} | wanted | declared(CORE) | IN_TURN
    assert not declared(CORE) & {"click", "rich", "pyyaml", "stevedore"}


def test_without_plugins_the_list_says_what_to_install(heron: Heron) -> None:
    """Users who install the core by its name see this first."""
    listed = heron("plugins", "list")
    assert listed.returncode == 0, listed.stderr
    assert "pip install heron-bundle-local" in listed.stdout


def test_a_run_without_plugins_names_the_missing_driver(heron: Heron) -> None:
    """One line with the command that repairs it, and no traceback."""
    ran = heron("run", str(ROOT / "examples" / "word_count.py"))
    assert ran.returncode == 2
    assert "`pip install heron-" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_new_plugin_needs_the_test_kit(heron: Heron, tmp_path: Path) -> None:
    """The scaffold and its tests are in a separate distribution; the error names it."""
    made = heron("plugins", "new", "statemgr", "etcd")
    assert made.returncode == 2
    assert "heron plugins new is not installed: `pip install heron-testing`" in made.stderr
    assert list(tmp_path.iterdir()) == []
