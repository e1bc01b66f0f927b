"""Resolves references in values: ``${env:NAME}`` is a variable of the environment, ``${file:PATH}`` the text of a file.

A profile refers to a secret instead of containing it. Only the command resolves references; messages show
the reference instead of its value. ``$${`` is a plain ``${``. In a sink, ``${run:logs}`` is the folder of the run's
logs, which is known only when there is a run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from heron.driver_kit.private_files import read_secret
from heron.errors import ConfigError
from heron_cli.profiles.findings import Findings
from heron_cli.profiles.layers import SINKS
from heron_cli.profiles.located import Located, Step, path_text

__all__ = ["RUN_LOGS", "References", "is_reference"]

RUN_LOGS = "${run:logs}"

_REFERENCE = re.compile(r"(?P<plain>\$)?\$\{(?P<source>[^:{}]*)(?::(?P<name>[^{}]*))?(?P<end>\}?)")


def is_reference(written: str) -> bool:
    """Return whether a value is nothing but a reference, so it can be shown even when its value is secret."""
    match = _REFERENCE.fullmatch(written)
    return match is not None and bool(match["name"] and match["end"]) and not match["plain"]


class References:
    """Resolves the references of one profile; reads each file once."""

    def __init__(self, environ: Mapping[str, str], findings: Findings) -> None:
        self._environ = environ
        self._findings = findings
        self._read: dict[str, str] = {}

    def resolved(self, located: Located, path: tuple[Step, ...]) -> Located:
        """Return the value with its references resolved; a reference that cannot be resolved is kept, as a problem."""
        written = located.value if located.text is None else located.text
        whole = self._whole(located, written, path)
        if isinstance(located.value, dict):
            parts = {key: self.resolved(each, (*path, key)) for key, each in located.value.items()}
            return replace(located, value=parts, text=whole.text)
        if isinstance(located.value, list):
            each_part = [self.resolved(each, (*path, index)) for index, each in enumerate(located.value)]
            return replace(located, value=each_part, text=whole.text)
        return whole

    def _whole(self, located: Located, written: object, path: tuple[Step, ...]) -> Located:
        if not isinstance(written, str):
            return located
        if "${" in written:
            return self._text(located, written, path)
        if written == "~" or written.startswith("~/"):
            text = str(Path(written).expanduser())
            return replace(located, value=text, text=text, shown=written)
        return located

    def _text(self, located: Located, written: str, path: tuple[Step, ...]) -> Located:
        found_any = False

        def value(match: re.Match[str]) -> str:
            nonlocal found_any
            if match["plain"]:
                return match[0][1:]
            if match[0] == RUN_LOGS and path[0] == SINKS:
                return match[0]
            try:
                text = self._value(match)
            except ConfigError as error:
                self._findings.add(path_text(path), str(error), located.origin)
                return match[0]
            self._findings.resolved[text] = match[0]
            found_any = True
            return text

        text = _REFERENCE.sub(value, written)
        return replace(located, value=text, text=text, shown=written if found_any else None)

    def _value(self, match: re.Match[str]) -> str:
        source, name = match["source"], match["name"]
        if match["end"] and name and source == "env":
            if name not in self._environ:
                msg = f"the environment has no variable {name!r}; set it or change the profile"
                raise ConfigError(msg)
            return self._environ[name]
        if match["end"] and name and source == "file":
            if name not in self._read:
                self._read[name] = read_secret(name)
            return self._read[name]
        msg = (
            f"{match[0]!r} is not a reference; known: '${{env:NAME}}', '${{file:PATH}}', in sinks '{RUN_LOGS}'; "
            "write '$${' for a plain '${'"
        )
        raise ConfigError(msg)
