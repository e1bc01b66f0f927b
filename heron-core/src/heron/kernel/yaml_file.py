"""YAML as configuration needs it: safe, string keys only, no key twice, errors with file and line."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

import yaml

from heron.errors import ConfigError

__all__ = ["parse_yaml", "read_yaml"]


class _Loader(yaml.SafeLoader):
    """PyYAML lets the last of two equal keys win without a word; here they are an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.MarkedYAMLError(None, None, f"key {key!r} is not text; quote it", key_node.start_mark)
            if key in seen:
                raise yaml.MarkedYAMLError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> object:
    """The document in a file.

    Raises:
        ConfigError: when the file cannot be read or is not one YAML document; names file, line and reason.
    """
    try:
        return parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}"
        raise ConfigError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{path}: not UTF-8 at byte {error.start}"
        raise ConfigError(msg) from error


def parse_yaml(text: str, place: str) -> object:
    """The document in a text; `place` is the first part of its error.

    Raises:
        ConfigError: when it is not one YAML document.
    """
    try:
        document: object = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader, see above
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}:" if error.problem_mark else ""
        msg = f"{place}:{line} {error.problem}"
        raise ConfigError(msg) from error
    except yaml.YAMLError as error:
        msg = f"{place}: not YAML: {error}"
        raise ConfigError(msg) from error
    return document
