"""Collects the problems of a profile, and keeps secrets out of their messages."""

from __future__ import annotations

from dataclasses import dataclass, field

from heron.driver_kit.redaction import redact
from heron.errors import ConfigError, HeronError, MissingDriverError, PluginError, UsageError
from heron_cli.profiles.located import Origin

__all__ = ["Findings", "Problem"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: its message, the path of its key and the place where the value was given, as far as known.

    `install` is the missing distribution, and `kind` the class of the error with which a command ends.
    """

    text: str
    path: str = ""
    origin: str = ""
    install: str = ""
    kind: type[UsageError] = ConfigError


@dataclass(slots=True)
class Findings:
    """Collects problems; the values of references are removed from every message.

    `resolved` maps texts that must not be shown to the references that are shown instead. `variables` are the
    variables of the environment that hold secrets.
    """

    problems: list[Problem] = field(default_factory=list)
    resolved: dict[str, str] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)

    def add(self, path: str, wrong: str | HeronError, origin: Origin | None = None) -> None:
        """Add a problem with the key at that path."""
        place = "" if origin is None else str(origin)
        start = place if not path or place.endswith(f" {path}") else f"{place}: {path}" if place else path
        kind = PluginError if isinstance(wrong, PluginError) else ConfigError
        install = wrong.distribution if isinstance(wrong, MissingDriverError) else ""
        text = f"{start}: {wrong}" if start else str(wrong)
        self.problems.append(Problem(self.clean(text), path, place, install, kind))

    def has(self, path: str) -> bool:
        """Return whether there is a problem with that key."""
        return any(each.path == path for each in self.problems)

    def has_below(self, path: str) -> bool:
        """Return whether there is a problem within that section."""
        return any(each.path.startswith(f"{path}.") for each in self.problems)

    def clean(self, text: str) -> str:
        """Return the text without the values of references."""
        for secret in sorted(self.resolved, key=len, reverse=True):
            text = redact(text, (secret,), self.resolved[secret])
        return text

    def check(self, remedy: str) -> None:
        """Raise the first problem, if any; its message has the number of the others and `remedy`, which lists them.

        Raises:
            ConfigError: when a section, key or value is wrong.
            PluginError: when a driver is missing or does not work.
        """
        if self.problems:
            first, more = self.problems[0], len(self.problems) - 1
            raise first.kind(f"{first.text} (and {more} more: {remedy})" if more else first.text)
