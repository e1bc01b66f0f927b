"""heron-core and heron-cli without plugins: their dependencies, and their messages about a missing plugin."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from heron_testing.waiting import wait_until

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


def build(folder: Path, *projects: Path) -> Path:
    """Build the wheels of these projects into a folder, and return it."""
    for project in projects:
        # With the hatchling of this environment, which has the same pin.
        here = ("--no-build-isolation", "--python", sys.executable)
        built = run(*UV, "build", "-q", "--wheel", *here, "--out-dir", str(folder), str(project))
        assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels of the core and the command."""
    return build(tmp_path_factory.mktemp("dist"), CORE, *(ROOT / "plugins" / name for name in COMMAND))


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


@pytest.mark.matrix
def test_without_plugins_the_list_says_what_to_install(heron: Heron) -> None:
    """Users who install the core by its name see this first."""
    listed = heron("plugins", "list")
    assert listed.returncode == 0, listed.stderr
    assert "pip install heron-bundle-local" in listed.stdout


@pytest.mark.matrix
def test_a_run_without_plugins_names_the_missing_driver(heron: Heron) -> None:
    """One line with the command that repairs it, and no traceback."""
    ran = heron("run", str(ROOT / "examples" / "word_count.py"))
    assert ran.returncode == 2
    assert "`pip install heron-" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.matrix
def test_a_new_plugin_needs_the_test_kit(heron: Heron, tmp_path: Path) -> None:
    """The scaffold and its tests are in a separate distribution; the error names it."""
    made = heron("plugins", "new", "statemgr", "etcd")
    assert made.returncode == 2
    assert "heron plugins new is not installed: `pip install heron-testing`" in made.stderr
    assert list(tmp_path.iterdir()) == []


# What the profile `local` names, and nothing else of the bundle.
LOCAL = (
    "plugins/checkpoint-localfs",
    "plugins/driver-kit",
    "plugins/metricsink-file",
    "plugins/packing-kit",
    "plugins/packing-roundrobin",
    "plugins/scheduler-kit",
    "plugins/scheduler-local",
    "plugins/statemgr-localfs",
    "plugins/store-sqlite",
    "plugins/uploader-localfs",
)
INSPECTOR = "plugins/task-inspector"
IDLE = """
from heron.api import Spout, TopologyBuilder

class Idle(Spout):
    outputs = ["number"]

    def next_tuple(self):
        pass

builder = TopologyBuilder("idle")
builder.set_config({"topology.inspect.tuples": True})
builder.add_spout("idle", Idle, par=1)
builder.build_and_submit()
"""
QUESTIONS = (
    ("stack", "idle", "1"),
    ("profile", "idle", "1", "--seconds", "0.1"),
    ("memory", "idle", "1", "--seconds", "0"),
    ("inspect", "idle", "1", "--seconds", "0.1"),
)


@pytest.fixture
def idle(dist: Path, tmp_path: Path) -> Iterator[tuple[Path, Heron]]:
    """A topology that runs in an environment without an inspector; and its command."""
    build(tmp_path / "dist", *(ROOT / each for each in LOCAL))
    venv = install(tmp_path, [str(each) for folder in (dist, tmp_path / "dist") for each in folder.glob("*.whl")])
    assert "heron-task-inspector" not in installed_names(venv)
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["HOME"] = str(tmp_path)
    (tmp_path / "idle.py").write_text(IDLE)

    def heron(*words: str) -> subprocess.CompletedProcess[str]:
        command = (str(venv / "bin" / "heron"), *words)
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
        )

    submitted = heron("submit", "local", "idle.py")
    assert submitted.returncode == 0, submitted.stderr
    try:
        yield venv, heron
    finally:
        heron("kill", "idle")


@pytest.mark.matrix
def test_a_task_without_an_inspector_says_how_to_install_it(idle: tuple[Path, Heron], tmp_path: Path) -> None:
    """The core runs topologies without it. Its task finds the inspector that is installed then, without a restart."""
    venv, heron = idle
    python = venv / "bin" / "python"

    def refused(*words: str) -> str:
        asked = heron(*words)
        said = " ".join(asked.stderr.split())
        return said if asked.returncode == 2 and "inspector" in said else ""

    for words in QUESTIONS:
        said = wait_until(partial(refused, *words), 60.0, f"the refusal of heron {words[0]}")
        assert f"no task inspector is installed in the Python of this task ({python} on " in said
        assert "to add one there: `pip install heron-task-inspector`, then ask again" in said
        assert "Traceback" not in said

    build(tmp_path / "inspector", ROOT / INSPECTOR)
    (wheel,) = (tmp_path / "inspector").glob("*.whl")
    installed = run(*UV, "pip", "install", "-q", "--no-deps", "--python", str(python), str(wheel))
    assert installed.returncode == 0, installed.stderr
    for words in QUESTIONS:
        asked = heron(*words)
        assert asked.returncode == 0, asked.stderr
    assert "thread MainThread (runs the component)" in heron("stack", "idle", "1").stdout
