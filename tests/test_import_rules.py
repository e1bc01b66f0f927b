"""The list of modules that a driver may import is complete, and import-linter holds every plugin to it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "heron-core" / "src" / "heron"
KITS = {
    "heron_cli",
    "heron_health_manager",
    "heron_load_replay",
    "heron_simulator",
    "heron_testing",
    "heron_testing_servers",
}
SERVICES = {"heron_service_tracker", "heron_service_ui"}
PUBLISHED = {"api", "author_text", "clock", "driver_kit", "errors", "spi", "state_machine"}


def linter_rule(name: str) -> dict[str, list[str]]:
    """The contract of import-linter with that id."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (rule,) = [each for each in table["contracts"] if each["id"] == name]
    assert isinstance(rule, dict)
    return rule


def drivers_rule() -> dict[str, list[str]]:
    """The contract about drivers and kits."""
    return linter_rule("drivers")


def documented(package: str) -> set[str]:
    """The modules of a package of the core in the table of docs/plugins.md."""
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"## What a plugin may import\n(.*?)\n## ", text, re.DOTALL)
    return set(re.findall(rf"`heron\.{package}\.(\w+)`", table))


def test_every_plugin_is_held_to_the_rule() -> None:
    """A plugin that is not in the list could import anything."""
    packages = {path.parent.name for path in ROOT.glob("plugins/*/src/*/__init__.py")}
    assert set(drivers_rule()["source_modules"]) == packages - KITS - SERVICES


def test_a_service_may_use_the_client_beside_what_drivers_may_use() -> None:
    """Running topologies are reached in one way, the client, so a service is held to what the client publishes."""
    rule = linter_rule("services")
    parts = {f"heron_cli.{path.name}" for path in (ROOT / "plugins/cli/src/heron_cli").iterdir() if path.is_dir()}
    published = {f"heron_cli.{name}" for name in ("client", "commands", "profiles", "__pycache__")}
    assert set(rule["source_modules"]) == SERVICES
    assert set(rule["forbidden_modules"]) == {*drivers_rule()["forbidden_modules"], *parts} - published - {"heron_cli"}


def test_every_package_of_the_core_is_published_or_private() -> None:
    """A new package of the core is private unless it is published on purpose."""
    private = {name for name in drivers_rule()["forbidden_modules"] if not name.startswith("heron.planner.")}
    packages = {path.stem for path in CORE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert private == {f"heron.{name}" for name in packages - PUBLISHED - {"__init__", "planner"}} | KITS


def test_modules_of_the_planner_are_documented_or_private() -> None:
    """An author reads docs/plugins.md; the linter checks the rule."""
    private = {name for name in drivers_rule()["forbidden_modules"] if name.startswith("heron.planner.")}
    modules = {path.stem for path in (CORE / "planner").glob("*.py")} - {"__init__"}
    assert documented("planner") <= modules
    assert private == {f"heron.planner.{name}" for name in modules - documented("planner")}


def test_helpers_for_drivers_are_documented() -> None:
    """A helper that is not in the table is written again by the next author."""
    assert documented("driver_kit") == {path.stem for path in (CORE / "driver_kit").glob("*.py")} - {"__init__"}
