"""The rooms of packages for docs/rooms.md, from the import contracts and the docstrings of the packages."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from heron.errors import ConfigError

__all__ = ["BEGIN", "END", "replaced", "rooms_text"]

BEGIN = "<!-- written by ./dev docs from the import contracts -->"
END = "<!-- end of what ./dev docs wrote -->"

_SOURCES = ("heron-core/src", "plugins/*/src")


def rooms_text(root: Path) -> str:
    """One table for each contract of layers: a module imports only those of a higher level number."""
    with (root / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    layered = [each for each in contracts if each["type"] == "layers"]
    return "\n\n".join(_table(root, each) for each in layered)


def replaced(text: str, block: str) -> str:
    """The text with another block between the marks.

    Raises:
        ConfigError: when it does not have the marks once.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        msg = f"docs/rooms.md: the lines {BEGIN!r} and {END!r} are not there once; restore them"
        raise ConfigError(msg)
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{block}\n\n{END}{rest.partition(END)[2]}"


def _table(root: Path, contract: Mapping[str, Sequence[str]]) -> str:
    container = contract["containers"][0]
    folder = _folder(root, container)
    lines = [f"| level | {container} | what it is |", "|---|---|---|"]
    for level, layer in enumerate(contract["layers"], start=1):
        among = ", among them" if ":" in layer else ""
        names = re.findall(r"[\w.]+", layer)
        lines += [f"| {level}{among} | `{name}` | {_first_sentence(folder / name)} |" for name in names]
    return "\n".join(lines)


def _folder(root: Path, package: str) -> Path:
    found = (path for sources in _SOURCES for path in root.glob(f"{sources}/{package.replace('.', '/')}"))
    folder = next(found, None)
    if folder is None:
        msg = f"pyproject.toml: no distribution has the package {package!r} of a contract; correct `containers`"
        raise ConfigError(msg)
    return folder


def _first_sentence(path: Path) -> str:
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    first = " ".join(docstring.partition("\n\n")[0].split())
    return re.split(r"(?<=[\w`)])\. ", first)[0].rstrip(".").replace("|", "\\|")
