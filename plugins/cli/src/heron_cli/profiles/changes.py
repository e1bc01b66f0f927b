"""The settings of the environment and the command line: ``HERON__SECTION__KEY=VALUE``, ``--set SECTION.KEY=VALUE``.

Both name a section and a key in it; further steps lead into sections of a driver's options. A variable is in capitals,
with ``__`` between the steps and ``_`` for a dot or a hyphen. The driver or the position in the list names a sink; the
position is needed when two sinks have the same driver. A value is read as YAML, except for a setting of type text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from heron.errors import ConfigError, known, nearest
from heron.kernel.settings import EngineSettings
from heron_cli.profiles.findings import Findings
from heron_cli.profiles.layers import (
    DRIVER,
    ENGINE,
    RUN_KEYS,
    SECTIONS,
    SINKS,
    Sections,
    engine_sections,
    merge_sections,
)
from heron_cli.profiles.located import Layer, Located, Origin
from heron_cli.profiles.yaml_file import parse_located

__all__ = ["PREFIX", "Change", "changed", "command_changes", "environment_changes"]

PREFIX = "HERON__"
"""The prefix of the variables that override settings."""

_BETWEEN = "__"


@dataclass(frozen=True, slots=True)
class Change:
    """One change: the section, the steps to the key in it, and the new value."""

    section: str
    steps: tuple[str, ...]
    value: Located


def environment_changes(environ: Mapping[str, str], findings: Findings) -> tuple[Change, ...]:
    """Return the changes that the variables make, sorted by name."""
    found = []
    for name in sorted(environ):
        if name.startswith(PREFIX):
            change = _of_variable(name, environ[name], findings)
            found += [] if change is None else [change]
    return tuple(found)


def command_changes(settings: Mapping[str, str], findings: Findings) -> tuple[Change, ...]:
    """Return the changes that ``--set`` makes."""
    found: list[Change] = []
    for path, text in settings.items():
        origin = Origin(Layer.COMMAND, f"--set {path}")
        section, _, key = path.partition(".")
        if section not in SECTIONS:
            findings.add("", f"unknown section {section!r}{nearest(section, SECTIONS)}; known: {_sections()}", origin)
        elif (not key and section != SINKS) or (key and "" in key.split(".")):
            findings.add("", f"not of the form SECTION.KEY=VALUE; sections: {known(SECTIONS)}", origin)
        else:
            steps = (key,) if section in {"engine", "run"} else tuple(key.split(".")) if key else ()
            found += _change(section, steps, text, origin, findings)
    return tuple(found)


def changed(sections: Sections, changes: Sequence[Change], findings: Findings) -> Sections:
    """Return the sections with one layer of changes merged into them."""
    above: Sections = {}
    for change in sorted(changes, key=lambda each: each.steps[-1:] != (DRIVER,)):
        below = above.get(SINKS, sections.get(SINKS)) if change.section == SINKS else None
        layer = _layer(change) if change.section != SINKS else _sinks(change, below, findings)
        if layer is not None:
            above = merge_sections(
                above, engine_sections(layer) if change.section == ENGINE else {change.section: layer}
            )
    return merge_sections(sections, above)


def _of_variable(name: str, text: str, findings: Findings) -> Change | None:
    origin = Origin(Layer.ENVIRONMENT, name)
    section, *steps = name.removeprefix(PREFIX).split(_BETWEEN)
    if section.lower() not in SECTIONS or section != section.upper():
        choices = [f"{PREFIX}{each.upper()}" for each in SECTIONS]
        wanted = nearest(f"{PREFIX}{section.upper()}", choices)
        findings.add(
            "", f"unknown section {section!r}{wanted}; known: {known(choices)}; correct it or unset it", origin
        )
        return None
    family = section.lower()
    if family in {"engine", "run"}:
        settings = (DRIVER, *(str(each.metadata["key"]) for each in fields(EngineSettings)))
        keys = RUN_KEYS if family == "run" else settings
        variables = {f"{PREFIX}{section}{_BETWEEN}{_in_capitals(key)}": key for key in keys}
        if name not in variables:
            findings.add("", f"unknown setting{nearest(name, variables)}; known: {known(variables)}", origin)
            return None
        steps = [variables[name]]
    elif "" in steps or (not steps and family != SINKS):
        findings.add("", f"not of the form {PREFIX}SECTION{_BETWEEN}KEY; correct it or unset it", origin)
        return None
    else:
        steps = [each.lower() for each in steps]
    return next(iter(_change(family, tuple(steps), text, origin, findings)), None)


def _change(
    section: str, steps: tuple[str, ...], text: str, origin: Origin, findings: Findings
) -> tuple[Change] | tuple[()]:
    try:
        value = replace(parse_located(text, origin), text=text)
    except ConfigError as error:
        if not steps:
            findings.add("", str(error).removeprefix(f"{origin}: "), origin)
            return ()
        value = Located(text, origin, text)  # the setting may be of type text
    if not steps and not isinstance(value.value, list):
        findings.add(
            "", f"not a list of sinks; name one sink, as in `{SINKS}.file.KEY`, or give the whole list", origin
        )
        return ()
    return (Change(section, steps, value),)


def _layer(change: Change) -> Located:
    layer = change.value
    for step in reversed(change.steps):
        layer = Located({step: layer}, change.value.origin)
    return layer


def _sinks(change: Change, below: Located | None, findings: Findings) -> Located | None:
    if not change.steps:
        return change.value
    sinks = below.value if below is not None and isinstance(below.value, list) else []
    index = _index(change.steps[0], [_driver_of(each) for each in sinks])
    if isinstance(index, str) or len(change.steps) == 1:
        why = index if isinstance(index, str) else "a sink is a section; name one of its keys"
        findings.add("", why, change.value.origin)
        return None
    layer = _layer(replace(change, steps=change.steps[1:]))
    one = merge_sections({SINKS: sinks[index]}, {SINKS: layer})[SINKS]
    return Located([*sinks[:index], one, *sinks[index + 1 :]], change.value.origin)


def _index(step: str, drivers: Sequence[str]) -> int | str:
    """Return the position of the sink that the step names, or an error message."""
    if step.isdecimal():
        if int(step) < len(drivers):
            return int(step)
        return f"no sink {step}; the profile has {len(drivers)}, counted from 0"
    found = [index for index, driver in enumerate(drivers) if _in_capitals(driver) == _in_capitals(step)]
    if not found:
        return f"no sink {step!r} in the profile{nearest(step, drivers)}; known: {known(drivers)}"
    if len(found) > 1:
        return f"{len(found)} sinks have the driver {step!r}; name one by its position, {SINKS}.{found[0]} or another"
    return found[0]


def _driver_of(sink: Located) -> str:
    driver = sink.value.get(DRIVER) if isinstance(sink.value, dict) else None
    return str(driver.value) if driver is not None else ""


def _in_capitals(key: str) -> str:
    return key.upper().replace(".", "_").replace("-", "_")


def _sections() -> str:
    return known(SECTIONS) + "; for the engine `heron.KEY`, for the topology `topology.KEY`"
