"""Merges the sections of one layer with those of the layer below.

Sections are merged key by key, with one exception. A layer that names another driver for a section replaces that
section, because the options below belong to a driver that is no longer used. A list (the sinks) is replaced as a whole.
"""

from __future__ import annotations

from typing import TypeAlias

from heron.errors import known, nearest
from heron_cli.profiles.findings import Findings
from heron_cli.profiles.located import Located

__all__ = [
    "CHECKPOINT",
    "DRIVER",
    "ENGINE",
    "ENGINE_SETTINGS",
    "HEALTH",
    "RUN_KEYS",
    "SECTIONS",
    "SINGLE",
    "SINKS",
    "STATE",
    "STORE",
    "Sections",
    "engine_sections",
    "known_sections",
    "merge_sections",
]

SINGLE = ("scheduler", "statemgr", "uploader", "packing")
"""The families of which a profile chooses exactly one driver."""

CHECKPOINT = "checkpoint"
"""The family of which a profile chooses at most one driver."""

STATE = "state"
"""The family of which topologies choose the drivers; a profile has the options of at most one."""

ENGINE = "engine"
"""The family of which a profile chooses at most one driver: what runs pipelines. Heron itself is the default."""

ENGINE_SETTINGS = "engine settings"
"""Heron's own keys of the section ``engine``, which have a dot. They stay when a layer names another driver."""

STORE = "store"
"""The family of which a profile chooses at most one driver: where pipelines keep their views."""

SINKS = "metricsink"
"""The family of which a profile has a list."""

HEALTH = "health"
"""The family of which a profile has a list, in its section ``health``: the policies of the health manager."""

SECTIONS = (*SINGLE, CHECKPOINT, STATE, SINKS, ENGINE, STORE, HEALTH, "run")
RUN_KEYS = ("log_dir", "run_dir")
DRIVER = "driver"

Sections: TypeAlias = dict[str, Located]


def known_sections(sections: Sections, findings: Findings) -> Sections:
    """Return the sections that a profile may have and that have the right type; the others are problems."""
    found: Sections = {}
    for name, section in sections.items():
        if name not in SECTIONS:
            findings.add(name, f"unknown section{nearest(name, SECTIONS)}; known: {known(SECTIONS)}", section.origin)
        elif name == SINKS and not isinstance(section.value, list):
            findings.add(name, f"not a list; write `{SINKS}: [{{driver: NAME}}]`, or `[]` for none", section.origin)
        elif name == ENGINE and section.value is not None:
            found |= engine_sections(section)
        elif name != SINKS and section.value is not None and not isinstance(section.value, dict):
            findings.add(name, "not a section of keys and values", section.origin)
        elif section.value is not None:
            found[name] = section
    return found


def engine_sections(section: Located) -> Sections:
    """Return the section ``engine`` in its two parts. Its short form is the name of a driver."""
    if not isinstance(section.value, dict):
        return {ENGINE: Located({DRIVER: section}, section.origin)}
    settings = {key: each for key, each in section.value.items() if "." in key}
    driver = {key: each for key, each in section.value.items() if key not in settings}
    parts = {ENGINE_SETTINGS: settings, ENGINE: driver}
    return {name: Located(dict(part), section.origin) for name, part in parts.items() if part}


def merge_sections(below: Sections, above: Sections) -> Sections:
    """Return the sections `below`, merged with those `above`."""
    return {
        **below,
        **{name: _section(below[name], above[name]) if name in below else above[name] for name in above},
    }


def _section(below: Located, above: Located) -> Located:
    named = _driver(above)
    return above if named is not None and named != _driver(below) else _deep(below, above)


def _driver(section: Located) -> object:
    return section.value[DRIVER].value if isinstance(section.value, dict) and DRIVER in section.value else None


def _deep(below: Located, above: Located) -> Located:
    if not isinstance(below.value, dict) or not isinstance(above.value, dict):
        return above
    both = {key: _deep(below.value[key], value) if key in below.value else value for key, value in above.value.items()}
    return Located({**below.value, **both}, above.origin)
