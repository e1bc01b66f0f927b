"""A plugin from ``heron plugins new`` installs, loads, passes lint, and fails the cases of unwritten methods."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

import pytest

from heron.spi.families import FAMILIES
from heron.spi.hooks import HOOK_NAMES, HookSpecs
from heron_testing.contracts.driver import DriverContract
from heron_testing.scaffold.new_plugin import OBSERVER_FAMILY, new_plugin

NAME = "brand-new"
WRITTEN = (*FAMILIES, OBSERVER_FAMILY)
PYTHON_M = (sys.executable, "-m")

# The rules for all drivers hold from the beginning, and so do the rules for a driver without work.
KEPT = {name for name in vars(DriverContract) if name.startswith("test_")}
# A serializer that refuses every value also refuses the unsupported ones, and its number is given.
KEPT_BY_FAMILY = {
    "statemgr": {"test_a_value_above_the_limit_is_refused"},  # a driver without a limit refuses no value
    "metricsink": {"test_close_is_idempotent"},
    "serializer": {"test_has_a_number_on_the_wire", "test_other_values_arrive_as_they_were_or_are_refused"},
}


def run(folder: Path, site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTEST_ADDOPTS": ""}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def outcomes(report: Path) -> dict[str, set[str]]:
    """Return for each outcome its cases, without their parameters; `failed` includes errors."""
    found: dict[str, set[str]] = defaultdict(set)
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  # pytest has just written it
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if kinds else "passed"
        found[outcome].add(case.attrib["name"].partition("[")[0])
    return found


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Create a new plugin of each family."""
    into = tmp_path_factory.mktemp("plugins")
    return {family: new_plugin(family, NAME, into) for family in WRITTEN}


@pytest.fixture(scope="module")
def site(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build all plugins as wheels, and install them beside the environment of this repository."""
    site = tmp_path_factory.mktemp("site")
    here = ("--python", sys.executable, "--target", str(site))
    offline = ("--no-deps", "--no-build-isolation", "--offline")
    installed = run(site, site, *PYTHON_M, "uv", "pip", "install", "-q", *here, *offline, *map(str, folders.values()))
    assert installed.returncode == 0, installed.stderr
    return site


@pytest.mark.matrix
def test_new_plugins_are_found_and_load(site: Path) -> None:
    """Authors first call `heron plugins list`; an error there would be the scaffold's fault."""
    heron = str(Path(sys.executable).with_name("heron"))
    listed = run(site, site, heron, "plugins", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    found = {
        (each["family"], each["distribution"]): each["error"]
        for each in json.loads(listed.stdout)
        if each["name"] == NAME
    }
    assert found == {(family, f"heron-{family}-{NAME}"): "" for family in WRITTEN}


@pytest.mark.parametrize("family", WRITTEN)
def test_new_plugin_follows_the_five_names_rule(family: str, folders: dict[str, Path]) -> None:
    """The error for a missing driver, the kernel and the README derive one name from another."""
    folder = folders[family]
    package = f"heron_{family}_{NAME.replace('-', '_')}"
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert folder.name == f"{family}-{NAME}"
    assert project["name"] == f"heron-{family}-{NAME}"
    assert list(project["entry-points"]) == [f"heron.{family}"]
    assert project["entry-points"][f"heron.{family}"][NAME].startswith(f"{package}.")
    assert (folder / "src" / package / "py.typed").is_file()
    assert {"## Install", "## Configuration", "## Capabilities", "## Limitations"} <= set(
        (folder / "README.md").read_text().splitlines()
    )


@pytest.mark.matrix  # starts mypy for each family
@pytest.mark.parametrize("family", WRITTEN)
def test_new_plugin_passes_lint(
    family: str, folders: dict[str, Path], site: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its configuration is as strict as this repository's, so the author starts without findings."""
    cache = tmp_path_factory.getbasetemp() / "mypy-of-plugins"
    for command in (
        ("ruff", "check", "--no-cache"),
        ("ruff", "format", "--check", "--no-cache"),
        ("mypy", "--cache-dir", str(cache)),
    ):
        ran = run(folders[family], site, *PYTHON_M, *command)
        assert ran.returncode == 0, ran.stdout


@pytest.mark.matrix
@pytest.mark.parametrize("family", FAMILIES)
def test_new_plugin_fails_exactly_what_its_author_has_to_write(
    family: str, folders: dict[str, Path], site: Path, tmp_path: Path
) -> None:
    """A case that passes on an empty driver checks nothing; a case that cannot pass is an error of the suite."""
    report = tmp_path / "report.xml"
    ran = run(
        folders[family], site, *PYTHON_M, "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", f"--junitxml={report}"
    )
    found = outcomes(report)
    assert ran.returncode == 1, ran.stdout
    assert found["passed"] == (KEPT - found["skipped"]) | KEPT_BY_FAMILY.get(family, set())
    assert found["failed"]
    skipped = {line for line in ran.stdout.splitlines() if line.startswith("SKIPPED")}
    assert all("does not declare the capability" in line for line in skipped), skipped


@pytest.mark.parametrize("family", FAMILIES)
def test_every_method_of_the_contract_is_there_and_documented(family: str, folders: dict[str, Path]) -> None:
    """The author fills in methods with the text of the contract beside them."""
    (source,) = (folders[family] / "src").glob("*/driver.py")
    text = source.read_text(encoding="utf-8")
    asked = [method for method in vars(FAMILIES[family]).values() if getattr(method, "__isabstractmethod__", False)]
    assert asked
    for method in asked:
        assert f"def {method.__name__}(" in text
        assert method.__doc__ in text


@pytest.mark.matrix
def test_new_observer_passes_its_tests_and_follows_every_hook(
    folders: dict[str, Path], site: Path, tmp_path: Path
) -> None:
    """An observer has no contract to fulfil, so its author starts from a test that receives a fact."""
    report = tmp_path / "report.xml"
    command = ("pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}")
    ran = run(folders[OBSERVER_FAMILY], site, *PYTHON_M, *command)
    assert ran.returncode == 0, ran.stdout
    assert outcomes(report) == {"passed": {"test_is_found_by_its_name", "test_logs_the_reason_of_a_dead_process"}}
    heron = str(Path(sys.executable).with_name("heron"))
    listed = run(site, site, heron, "plugins", "list", OBSERVER_FAMILY, "--json")
    (found,) = (each for each in json.loads(listed.stdout) if each["name"] == NAME)
    assert found["capabilities"] == sorted(HOOK_NAMES)


def test_new_observer_has_the_text_of_each_hook(folders: dict[str, Path]) -> None:
    """The author reads in the method when Heron calls it, and in which process."""
    (source,) = (folders[OBSERVER_FAMILY] / "src").glob("*/observer.py")
    text = source.read_text(encoding="utf-8")
    for name in HOOK_NAMES:
        method = vars(HookSpecs)[name]
        assert f"def {name}(" in text
        assert method.__doc__ in text
