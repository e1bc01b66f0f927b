"""A profile with its layers laid over each other: files, then the environment, then the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from heron_cli.profiles.changes import changed, command_changes, environment_changes
from heron_cli.profiles.findings import Findings
from heron_cli.profiles.layers import Sections, known_sections, laid_over
from heron_cli.profiles.search import read_chain

__all__ = ["Layered", "Overlay", "read_layers"]


@dataclass(frozen=True, slots=True)
class Overlay:
    """What lies above the files: ``--set`` as ``{"section.key": value}``, and the environment."""

    command: Mapping[str, str]
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Layered:
    """What a profile says, references unresolved and drivers not yet looked for; `files` begins with its own."""

    name: str
    files: tuple[Path, ...]
    sections: Sections


def read_layers(name: str, config_path: Path | None, overlay: Overlay, findings: Findings) -> Layered:
    """Reads the files of a profile and lays everything over each other; what has no place in it is a problem.

    Raises:
        ConfigError: when there is no such profile, or a file does not read.
    """
    chain = read_chain(name, config_path)
    sections: Sections = {}
    for each in reversed(chain):
        sections = laid_over(sections, known_sections(each.sections, findings))
    sections = changed(sections, environment_changes(overlay.environ, findings), findings)
    sections = changed(sections, command_changes(overlay.command, findings), findings)
    return Layered(name, tuple(each.path for each in chain), sections)
