"""What is wrong with a profile, all of it, and what must not be said of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from heron.driver_kit.redaction import redact
from heron.errors import ConfigError, HeronError, MissingDriverError, PluginError, UsageError
from heron_cli.profiles.located import Origin

__all__ = ["Findings", "Problem"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: the whole message, and, where it has them, the path of its key and where that was given.

    `install` is the distribution that is missing; `kind` the class of the error that a command ends with.
    """

    text: str
    path: str = ""
    origin: str = ""
    install: str = ""
    kind: type[UsageError] = ConfigError


@dataclass(slots=True)
class Findings:
    """Collects problems; what references stood for is taken out of every message.

    `resolved` is what must not be shown, with the reference that is shown instead; `variables` are those of the
    environment that hold secrets.
    """

    problems: list[Problem] = field(default_factory=list)
    resolved: dict[str, str] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)

    def add(self, path: str, wrong: str | HeronError, origin: Origin | None = None) -> None:
        """Something is wrong with the key at that path."""
        place = "" if origin is None else str(origin)
        start = place if not path or place.endswith(f" {path}") else f"{place}: {path}" if place else path
        kind = PluginError if isinstance(wrong, PluginError) else ConfigError
        install = wrong.distribution if isinstance(wrong, MissingDriverError) else ""
        text = f"{start}: {wrong}" if start else str(wrong)
        self.problems.append(Problem(self.clean(text), path, place, install, kind))

    def has(self, path: str) -> bool:
        """Whether something is known to be wrong with that key."""
        return any(each.path == path for each in self.problems)

    def has_below(self, path: str) -> bool:
        """Whether something is known to be wrong within that section."""
        return any(each.path.startswith(f"{path}.") for each in self.problems)

    def clean(self, text: str) -> str:
        """The text without what references stood for."""
        for secret in sorted(self.resolved, key=len, reverse=True):
            text = redact(text, (secret,), self.resolved[secret])
        return text

    def check(self, remedy: str) -> None:
        """Raises the first problem, if there is one; says how many more there are and `remedy`, how to see them.

        Raises:
            ConfigError: when a section, key or value is wrong.
            PluginError: when a driver is missing or does not work.
        """
        if self.problems:
            first, more = self.problems[0], len(self.problems) - 1
            raise first.kind(f"{first.text} (and {more} more: {remedy})" if more else first.text)
