"""Reads YAML for configuration: only JSON values, no duplicate keys, a limited size. Each value has its file and line.

Numbers follow YAML 1.2, unlike in PyYAML's safe loader: ``010`` and ``1:30`` are text, and ``1e3`` is a number. A date
is text.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import yaml

from heron.errors import ConfigError
from heron_cli.profiles.located import Layer, Located, Origin, plain

__all__ = ["parse_located", "parse_yaml", "read_yaml"]

_MAX_BYTES = 1 << 20  # a profile has a few hundred bytes
_MAX_VALUES = 10_000  # a few bytes with aliases can expand to many values
_RULES = {
    "int": (r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F]+)", "-+0123456789"),
    "float": (r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
}
_REPLACED = {f"tag:yaml.org,2002:{name}" for name in (*_RULES, "timestamp")}


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own class attribute, copied
        first: [(tag, rule) for tag, rule in rules if tag not in _REPLACED]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


for _name, (_rule, _first) in _RULES.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(rf"(?:{_rule})\Z"), list(_first))


def read_yaml(path: Path) -> Located:
    """Return the document in a file.

    Raises:
        ConfigError: when the file cannot be read, or is not one YAML document of JSON values; names file, line and
            reason.
    """

    def origin(line: int) -> Origin:
        return Origin(Layer.FILE, f"{path}:{line}")

    return _located(_content(path), str(path), origin)


def parse_yaml(text: str, place: str) -> object:
    """Return the document in a text; `place` is the first part of an error message.

    Raises:
        ConfigError: when the text is not one YAML document of JSON values.
    """
    return plain(parse_located(text, Origin(Layer.COMMAND, place)))


def parse_located(text: str, origin: Origin) -> Located:
    """Return the document in a text; every part has the same origin.

    Raises:
        ConfigError: as `parse_yaml`.
    """
    return _located(text, str(origin), lambda _line: origin)


def _content(path: Path) -> str:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
            msg = f"{path}: cannot be read: it is {kind}; put a YAML file in its place"
            raise ConfigError(msg)
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        remedy = "make it readable" if os.access(path, os.F_OK) else "check that it exists"
        msg = f"{path}: cannot be read: {error.strerror}; {remedy}"
        raise ConfigError(msg) from error
    if len(content) > _MAX_BYTES:
        msg = f"{path}: larger than {_MAX_BYTES} bytes; is it a profile?"
        raise ConfigError(msg)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        msg = f"{path}: line {line}: not UTF-8 at byte {error.start}; save the file as UTF-8"
        raise ConfigError(msg) from error


def _located(text: str, place: str, origin: Callable[[int], Origin]) -> Located:
    try:
        return _Converter(_Loader(text), origin).document()
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}:" if error.problem_mark else ""
        problem = str(error.problem or error.context)
        if "'\\t'" in problem:
            problem = "a tab in the indentation; indent with spaces"
        msg = f"{place}:{line} {problem}"
        raise ConfigError(msg) from error
    except yaml.reader.ReaderError as error:
        line_number = text.count("\n", 0, error.position) + 1
        msg = f"{place}: line {line_number}: a character that YAML does not allow, {chr(error.character)!r}; remove it"
        raise ConfigError(msg) from error
    except RecursionError as error:
        msg = f"{place}: sections are nested too deeply; flatten them"
        raise ConfigError(msg) from error


class _Converter:
    """Converts the nodes of one document to located values."""

    def __init__(self, loader: _Loader, origin: Callable[[int], Origin]) -> None:
        self._loader = loader
        self._origin = origin
        self._open: set[int] = set()
        self._count = 0

    def document(self) -> Located:
        try:
            node = self._loader.get_single_node()
            return Located(None, self._origin(1)) if node is None else self._convert(node)
        finally:
            self._loader.dispose()

    def _convert(self, node: yaml.Node) -> Located:
        self._count += 1
        if self._count > _MAX_VALUES:
            raise _error(node, f"more than {_MAX_VALUES} values; is it a profile?")
        if id(node) in self._open:
            raise _error(node, "an alias inside its own value; write the value out")
        self._open.add(id(node))
        try:
            return Located(self._value(node), self._origin(node.start_mark.line + 1))
        finally:
            self._open.discard(id(node))

    def _value(self, node: yaml.Node) -> dict[str, Located] | list[Located] | str | int | float | bool | None:
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self._section(node)
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self._convert(each) for each in node.value]
        if isinstance(node, yaml.ScalarNode):
            value: object = self._loader.construct_object(node)
            if value is None or isinstance(value, str | int | float | bool):
                return value
        raise _error(node, f"{node.tag.replace('tag:yaml.org,2002:', '!!')} is not a JSON type; write it as text")

    def _section(self, node: yaml.MappingNode) -> dict[str, Located]:
        found: dict[str, Located] = {}
        for key_node, value_node in node.value:
            if key_node.value == "<<":
                raise _error(key_node, "`<<` is not supported; a profile extends another with `extends: NAME`")
            key = self._convert(key_node).value
            if not isinstance(key, str):
                raise _error(key_node, f"key {plain(Located(key, self._origin(1)))!r} is not text; quote it")
            if key in found:
                raise _error(key_node, f"duplicate key {key!r}; keep one")
            found[key] = self._convert(value_node)
        return found


def _error(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(None, None, problem, node.start_mark)
