"""One rule gives a plugin its five names: folder, distribution, import package, entry-point group and name.

The folder ``plugins/scheduler-local/`` has the distribution ``heron-scheduler-local``, the import package
``heron_scheduler_local``, the group ``heron.scheduler`` and the name ``local``. A bundle has no code, so it has no
import package and no entry point. A compat plugin that installs a foreign package has the import package of that name.
A connector is imported by pipelines and a runtime by topologies, so they have no entry point. A service is a
command, so its entry point ``NAME`` is in the group ``heron.command``. A library (the command, the kits, the replay of
load) has no family: ``plugins/cli/`` is ``heron-cli`` is ``heron_cli``.
"""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint, distribution
from pathlib import Path
from typing import TypeGuard

import click
import pytest

ROOT = Path(__file__).resolve().parents[1]
FAMILIES = {
    "bundle", "checkpoint", "compat", "connector", "engine", "health", "metricsink", "packing", "runtime", "scheduler",
    "serializer", "service", "state", "statemgr", "store", "task", "uploader",
}  # fmt: skip
LIBRARIES = {
    "cli", "driver-kit", "hdfs-kit", "load-replay", "packing-kit", "s3-kit", "scheduler-kit", "simulator", "spark-kit",
    "speedups", "streamlet", "testing", "testing-servers",
}  # fmt: skip
DISTRIBUTIONS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
PLUGINS = [folder for folder in DISTRIBUTIONS if folder.name not in LIBRARIES]
DRIVERS = [folder for folder in PLUGINS if not folder.name.startswith(("bundle-", "connector-", "runtime-"))]
PACKAGES = [folder for folder in DISTRIBUTIONS if not folder.name.startswith("bundle-")]


def is_table(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def project(folder: Path) -> dict[str, object]:
    table = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert is_table(table)
    return table


def import_name(folder: Path) -> str:
    foreign = folder.name.removeprefix("compat-").replace("-", "_")
    if foreign != folder.name and (folder / "src" / foreign).is_dir():
        return foreign
    return "heron_" + folder.name.replace("-", "_")


def heron_entry_points(folder: Path) -> list[EntryPoint]:
    found = distribution(f"heron-{folder.name}").entry_points
    return [point for point in found if point.group.startswith("heron.")]


def folder_name(folder: Path) -> str:
    return folder.name


@pytest.mark.parametrize("folder", PLUGINS, ids=folder_name)
def test_folder_is_a_known_family_and_a_name(folder: Path) -> None:
    """The family decides the contract that the core expects."""
    family, _, name = folder.name.partition("-")
    assert family in FAMILIES
    assert name


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=folder_name)
def test_distribution_has_the_folders_name(folder: Path) -> None:
    """The error for a missing driver derives the distribution to install from family and name."""
    assert project(folder)["name"] == f"heron-{folder.name}"
    assert distribution(f"heron-{folder.name}").version == project(folder)["version"]


@pytest.mark.parametrize("folder", PACKAGES, ids=folder_name)
def test_folder_holds_exactly_its_own_typed_import_package(folder: Path) -> None:
    """Import packages are flat: two plugins can never own parts of the same package."""
    names = [path.name for path in (folder / "src").iterdir() if path.is_dir() and path.suffix != ".egg-info"]
    assert names == [import_name(folder)]
    assert (folder / "src" / import_name(folder) / "py.typed").is_file()


@pytest.mark.parametrize("folder", DRIVERS, ids=folder_name)
def test_installed_entry_point_names_family_driver_and_package(folder: Path) -> None:
    """The kernel finds drivers only by group and name."""
    family, _, name = folder.name.partition("-")
    points = heron_entry_points(folder)
    if folder.name == "health-manager":  # it brings several policies, each with a name of its own
        assert {point.group for point in points} == {"heron.health", "heron.command", "heron.config", "heron.service"}
        assert {point.module.partition(".")[0] for point in points} == {import_name(folder)}
        return
    if family != "engine":  # a plugin may have several engines, NAME-MODE each: they share their code
        assert [point.name for point in points] == [name]
    assert points
    for point in points:
        group, kind = ("heron.command", click.Command) if family == "service" else (f"heron.{family}", type)
        assert (point.group, point.name.removesuffix(point.name[len(name) :])) == (group, name)
        assert point.module.partition(".")[0] == import_name(folder)
        assert isinstance(point.load(), kind)


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=folder_name)
def test_readme_says_what_it_cannot_do(folder: Path) -> None:
    """The limits of a driver are part of the contract with its users."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"# heron-{folder.name}\n")
    assert {"## Install", "## Configuration", "## Capabilities", "## Limitations"} <= set(text.splitlines())


def test_bundle_requires_what_its_readme_lists() -> None:
    """A bundle consists of its dependencies, so its table describes it completely."""
    folder = ROOT / "plugins" / "bundle-local"
    dependencies = project(folder)["dependencies"]
    assert isinstance(dependencies, list)
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert [name for name in dependencies if f"| `{name.partition('>')[0]}` |" not in text] == []
