"""The names of a plugin, which one rule derives from its family and name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from heron.errors import PluginError

__all__ = ["PluginNames"]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_NAME_CHARACTERS = 40  # with the family in front it is still readable in a table


@dataclass(frozen=True, slots=True)
class PluginNames:
    """The names of the plugin of a family and name, such as statemgr and etcd.

    `base` ends the name of its class: the class name of its contract, such as StateManager, or Observer.

    Raises:
        PluginError: when the name is longer than 40 characters, or is not a sequence of lower-case words of letters
            and digits, joined by hyphens, with a letter first.
    """

    family: str
    name: str
    base: str

    def __post_init__(self) -> None:
        """Check the name."""
        if not _NAME.fullmatch(self.name) or len(self.name) > _NAME_CHARACTERS:
            msg = (
                f"{self.name[: 2 * _NAME_CHARACTERS]!r} cannot be the name of a plugin: use at most "
                f"{_NAME_CHARACTERS} characters, lower-case letters, digits and inner hyphens, a letter first"
            )
            raise PluginError(msg)

    @property
    def folder(self) -> str:
        """``statemgr-etcd``."""
        return f"{self.family}-{self.name}"

    @property
    def distribution(self) -> str:
        """``heron-statemgr-etcd``, the name for pip."""
        return f"heron-{self.folder}"

    @property
    def package(self) -> str:
        """``heron_statemgr_etcd``, the import package."""
        return self.distribution.replace("-", "_")

    @property
    def group(self) -> str:
        """``heron.statemgr``, the group of its entry point; the name of the entry point is the plugin's."""
        return f"heron.{self.family}"

    @property
    def stem(self) -> str:
        """``Etcd``, the first part of the names of its classes."""
        return "".join(word.capitalize() for word in self.name.split("-"))

    @property
    def class_name(self) -> str:
        """``EtcdStateManager``, the class that its entry point names."""
        return f"{self.stem}{self.base}"
