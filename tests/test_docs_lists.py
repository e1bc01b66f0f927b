"""The lists of commands, plugins, examples and files of packages are complete, and name nothing that is absent."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distribution, entry_points
from pathlib import Path

import click
import pytest

from heron_cli.main import heron

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = ROOT / "docs" / "commands.md"
PLUGIN_LIST = ROOT / "docs" / "plugin-list.md"
EXAMPLES = ROOT / "examples" / "README.md"
CORE = ROOT / "heron-core" / "src" / "heron"
FLAT = (CORE, CORE / "api", CORE / "spi")  # docs/rooms.md says why
PACKAGES = [each.parent for each in sorted(CORE.rglob("__init__.py")) if each.parent not in FLAT]

COMMAND = re.compile(r"^\| `heron ([^`]*)` \| (.*) \|$", re.MULTILINE)
OPTION = re.compile(r"`(--[a-z-]+)")
PLUGIN = re.compile(r"^\| \[(heron-[\w-]+)\]\(\.\./(plugins/[\w-]+)/README\.md\) \| (\w+) \| ([^|]*) \|", re.MULTILINE)
DISTRIBUTION = re.compile(r"^\| \[?(heron-[\w-]+)\b", re.MULTILINE)
LINK = re.compile(r"^\| \[([^\]]*)\]\(([^)]*)\) \|", re.MULTILINE)


def commands_of(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """The commands below a group, by their path; a group itself is none."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands_of(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


INSTALLED = dict(commands_of(heron))


def rows_of_commands() -> Iterator[tuple[list[str], str]]:
    """The commands of each row of the page, and the text beside them."""
    for usage, text in COMMAND.findall(COMMANDS.read_text(encoding="utf-8")):
        name, *rest = usage.split()
        if name.startswith("--"):  # an option of all commands
            continue
        group = any(path.startswith(f"{name} ") for path in INSTALLED)
        below = next((word for word in rest if word[0].islower()), "") if group else ""
        yield [f"{name} {each}".strip() for each in below.split("\\|")], text


ROWS = list(rows_of_commands())


def test_the_page_has_every_command_once_and_no_other() -> None:
    """People look here for a command, and a plugin can bring one."""
    listed = [command for commands, _ in ROWS for command in commands]
    assert sorted(listed) == sorted(INSTALLED)


@pytest.mark.parametrize(("commands", "text"), ROWS, ids=[" ".join(row[0]) for row in ROWS])
def test_the_options_of_a_row_exist(commands: list[str], text: str) -> None:
    """An option that was renamed would stay here. A row may name `run` and `submit` as well."""
    asked = [*commands, *(name for name in ("run", "submit") if f"`{name}`" in text)]
    known = {option for name in asked for each in INSTALLED[name].params for option in each.opts}
    assert [option for option in OPTION.findall(text) if option not in known] == []


def test_a_command_of_another_distribution_names_it() -> None:
    """Without the distribution, the command is not found."""
    texts = {command: text for commands, text in ROWS for command in commands}
    for each in entry_points(group="heron.command"):
        assert each.dist is not None
        assert f"`pip install {each.dist.name}`" in texts[each.name.replace(".", " ")]


@cache
def distributions() -> dict[str, Path]:
    """The folder of each distribution of the workspace, by name."""
    files = [ROOT / "heron-core" / "pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml")]
    return {tomllib.loads(path.read_text(encoding="utf-8"))["project"]["name"]: path.parent for path in files}


def test_the_list_of_plugins_has_every_distribution_once_and_no_other() -> None:
    """People choose from this list; a distribution that is missing there is not found."""
    assert sorted(DISTRIBUTION.findall(PLUGIN_LIST.read_text(encoding="utf-8"))) == sorted(distributions())


@pytest.mark.parametrize("row", PLUGIN.findall(PLUGIN_LIST.read_text(encoding="utf-8")), ids=lambda row: row[0])
def test_a_row_of_the_list_names_folder_family_and_drivers(row: tuple[str, str, str, str]) -> None:
    """A profile names a driver by family and name, as the entry points do."""
    name, folder, family, drivers = row
    assert distributions()[name] == ROOT / folder
    points = distribution(name).entry_points
    names = {each.name for each in points if each.group == f"heron.{family}"}
    if family == "service":
        names = {each.name for each in points if each.group == "heron.command"}
    assert set(re.findall(r"`([^`]+)`", drivers)) == names
    assert Path(folder).name.partition("-")[0] == family


def programs(folder: Path) -> set[str]:
    """The examples: files that no other example imports, and the folders of plugins."""
    files = {
        path
        for path in folder.rglob("*.py")
        if "plugins" not in path.relative_to(folder).parts and path.name != "__init__.py"
    }
    imported = {name for path in files for name in imports(path)}
    plugins = {path.parent for path in folder.glob("plugins/*/pyproject.toml")}
    return {str(path.relative_to(folder)) for path in {each for each in files if each.stem not in imported} | plugins}


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


def test_the_list_of_examples_has_every_program_once_and_no_other() -> None:
    """Authors start from an example, and cannot start from one that they do not see."""
    rows = LINK.findall(EXAMPLES.read_text(encoding="utf-8"))
    assert sorted(text for text, _ in rows) == sorted(programs(EXAMPLES.parent))
    assert all(target.removesuffix("/README.md") == text for text, target in rows)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.relative_to(CORE).as_posix())
def test_the_docstring_of_a_package_names_each_of_its_files(package: Path) -> None:
    """ARCHITECTURE.md sends people there who look for a file."""
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    names = {path.stem for path in package.glob("*.py")} - {"__init__"}
    assert {name for name in names if f"`{name}`" not in docstring} == set()
