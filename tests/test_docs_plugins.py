"""The page on plugins agrees with the code, and its examples keep their contracts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from heron.spi.families import FAMILIES
from heron.spi.hooks import HOOK_FACTS, HookSpecs
from heron_cli.catalog.drivers import Drivers
from heron_testing.scaffold.new_plugin import new_plugin

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "plugins.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?P<hooks>`heron_[^|]*) \| (?P<where>[^|]*) \| (?P<facts>[^|]*) \|$", re.MULTILINE)
FLAG = re.compile(r"^\| (\w+) \| `(\w+)` \| [^|]+ \| [^|]+ \| ([^|]*) \|$", re.MULTILINE)
FILE = re.compile(r"^```python\n# ((?:src|tests)/\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = ("packing-isolate", "metricsink-sqlite")
CHECKS = (
    ("pytest", "-q", "-p", "no:cacheprovider"),
    ("mypy", "--no-incremental"),
    ("ruff", "check", "--no-cache"),
    ("ruff", "format", "--check", "--no-cache"),
)


def test_the_page_lists_every_hook_with_its_facts() -> None:
    """Authors of observers read this table; they cannot use a fact that is missing there."""
    found = {
        hook: (row["where"], frozenset(row["facts"].split(", ")))
        for row in ROW.finditer(PAGE)
        for hook in re.findall(r"heron_\w+", row["hooks"])
    }
    assert {hook: facts for hook, (_, facts) in found.items()} == HOOK_FACTS
    for hook, (where, _) in found.items():
        text = " ".join((vars(HookSpecs)[hook].__doc__ or "").split())
        assert f"Called in the {where.removeprefix('the ')}" in text


def test_the_page_lists_every_family() -> None:
    """The row of a family names its contract."""
    for family, base in FAMILIES.items():
        assert f"| {family} | `{base.__module__}.{base.__qualname__}` |" in PAGE


def test_the_page_lists_every_capability_flag() -> None:
    """A flag that is missing here is not declared, and the suite then skips its cases."""
    known = {
        (family, flag)
        for family, base in FAMILIES.items()
        for flag in getattr(sys.modules[base.__module__], "CAPABILITIES", ())
    }
    assert {(family, flag) for family, flag, _ in FLAG.findall(PAGE)} == known


def test_the_page_lists_the_flags_of_each_driver() -> None:
    """People choose a driver by what it can do."""
    declared: dict[tuple[str, str], set[str]] = {}
    for each in Drivers().catalog():
        for flag in each.capabilities:
            declared.setdefault((each.family, flag), set()).add(each.name)
    for family, flag, drivers in FLAG.findall(PAGE):
        assert set(re.findall(r"`([\w-]+)`", drivers)) == declared.get((family, flag), set()), (family, flag)


def written(plugin: str, into: Path) -> Path:
    """Return the folder of an example: the scaffold, in which files of the page replace files of the scaffold."""
    family, _, name = plugin.partition("-")
    folder = new_plugin(family, name, into)
    package = f"heron_{family}_{name}"
    files = [(path, text) for path, text in FILE.findall(PAGE) if package in path or f"from {package}." in text]
    assert {path for path, _ in files} == {f"src/{package}/driver.py", "tests/test_contract.py"}
    for path, text in files:
        (folder / path).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module", params=EXAMPLES)
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder of an example, and a folder for `PYTHONPATH` into which it is installed."""
    into = tmp_path_factory.mktemp("examples")
    folder, site = written(request.param, into), into / "site"
    command = (sys.executable, "-m", "uv", "pip", "install", "-q", "--python", sys.executable, "--target", str(site))
    subprocess.run((*command, "--no-deps", "--no-build-isolation", "--offline", str(folder)), check=True, timeout=100)
    return folder, site


@pytest.mark.matrix  # installs each example
@pytest.mark.parametrize("check", CHECKS, ids=lambda each: each[1] if each[0] == "ruff" else each[0])
def test_an_example_keeps_its_contract_and_passes_lint(example: tuple[Path, Path], check: tuple[str, ...]) -> None:
    """People start from an example, so it must be a whole driver and not a sketch."""
    folder, site = example
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTEST_ADDOPTS": ""}
    ran = subprocess.run(
        (sys.executable, "-m", *check),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
