"""Lists all settings of a profile, defaults included, each with its origin; secrets stay references."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from heron.kernel.settings import EngineSettings
from heron.spi.health_section import HealthSection
from heron.spi.options import option_fields
from heron_cli.profiles.findings import Findings
from heron_cli.profiles.health_choice import POLICIES, policy_sections
from heron_cli.profiles.layers import (
    CHECKPOINT,
    DRIVER,
    ENGINE,
    ENGINE_SETTINGS,
    HEALTH,
    SECTIONS,
    SINGLE,
    SINKS,
    STATE,
    STORE,
)
from heron_cli.profiles.located import Layer, Located, leaves, path_text, plain
from heron_cli.profiles.reading import RUN_DEFAULTS, Overlay, read_layers
from heron_cli.profiles.references import is_reference
from heron_cli.profiles.search import is_shipped
from heron_cli.profiles.section import DriverSection, Resolver, driver_section

__all__ = ["ListedProfile", "ListedSetting", "list_settings"]

_HIDDEN = "(secret)"
_UNKNOWN = "(hidden: unknown key)"


@dataclass(frozen=True, slots=True)
class ListedSetting:
    """One value with the `steps` that lead to it, and its `layer` and `origin`. References are unresolved."""

    steps: tuple[str | int, ...]
    value: object
    layer: str
    origin: str

    @property
    def path(self) -> str:
        """``metricsink[0].directory``."""
        return path_text(self.steps)


@dataclass(frozen=True, slots=True)
class ListedProfile:
    """The settings of a profile in the order of its sections; `files` begins with its own, then what it extends."""

    name: str
    files: tuple[Path, ...]
    settings: tuple[ListedSetting, ...]


def list_settings(
    name: str,
    resolve: Resolver,
    *,
    config_path: Path | None = None,
    overrides: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> ListedProfile:
    """Return the settings of a profile. Defaults of drivers that are not installed are unknown and left out.

    Raises:
        ConfigError: when the profile does not exist, or a file cannot be read or has an unknown section or key.
    """
    findings = Findings()
    overlay = Overlay(overrides or {}, os.environ if environ is None else environ)
    layered = read_layers(name, config_path, overlay, findings)
    findings.check(f"`heron profiles check {name}`")
    found: list[ListedSetting] = []
    for section in SECTIONS:
        located = layered.sections.get(section)
        if section == SINKS:
            sinks = located.value if located is not None and isinstance(located.value, list) else []
            found += (
                [ListedSetting((SINKS,), [], *_layer_and_origin(located))] if located is not None and not sinks else []
            )
            for index, each in enumerate(sinks):
                found += _driver(each, (SINKS, index), resolve)
        elif section in {*SINGLE, CHECKPOINT, STATE, STORE}:
            found += [] if located is None else _driver(located, (section,), resolve)
        elif section == HEALTH:
            found += [] if located is None else _health(located, resolve)
        elif section == ENGINE:
            found += _engine(located, resolve)
            found += _own(section, layered.sections.get(ENGINE_SETTINGS))
        else:
            found += _own(section, located)
    return ListedProfile(name, layered.files, tuple(found))


def _driver(located: Located, path: tuple[str | int, ...], resolve: Resolver) -> Iterator[ListedSetting]:
    section = driver_section(located, path, resolve, Findings())
    if section is None:
        yield from (
            ListedSetting((*path, *steps), _unknown(steps, leaf), *_layer_and_origin(leaf))
            for steps, leaf in leaves(located)
        )
        return
    yield ListedSetting((*path, "driver"), section.driver.value, *_layer_and_origin(section.driver))
    for steps, leaf in leaves(section.options):
        if steps:
            yield ListedSetting((*path, *steps), _shown(section, steps, leaf), *_layer_and_origin(leaf))
    origin = f"default of {section.ref.family} driver {section.ref.name!r}"
    given = section.options.value if isinstance(section.options.value, dict) else {}
    for field in option_fields(section.schema):
        if field.name not in given and not field.required:
            yield ListedSetting((*path, field.name), field.default, Layer.DEFAULT.value, origin)


def _engine(located: Located | None, resolve: Resolver) -> Iterator[ListedSetting]:
    """Yield what runs pipelines: Heron, unless the profile names a driver."""
    if located is None:
        yield ListedSetting((ENGINE, DRIVER), "heron", Layer.DEFAULT.value, "default of pipelines")
    elif isinstance(located.value, dict) and DRIVER in located.value and located.value[DRIVER].value == "heron":
        yield ListedSetting((ENGINE, DRIVER), "heron", *_layer_and_origin(located.value[DRIVER]))
    else:
        yield from _driver(located, (ENGINE,), resolve)


def _health(located: Located, resolve: Resolver) -> Iterator[ListedSetting]:
    given = located.value if isinstance(located.value, dict) else {}
    for key, each in given.items():
        if key != POLICIES:
            yield ListedSetting((HEALTH, key), plain(each), *_layer_and_origin(each))
    for field in option_fields(HealthSection):
        if field.name not in given:
            yield ListedSetting((HEALTH, field.name), field.default, Layer.DEFAULT.value, "default of the section")
    for index, each in enumerate(policy_sections(located, Findings())):
        yield from _driver(each, (HEALTH, POLICIES, index), resolve)


def _shown(section: DriverSection, steps: tuple[str | int, ...], leaf: Located) -> object:
    field = section.field_at(steps)
    if field is None:
        return _unknown(steps, leaf)
    return _HIDDEN if field.secret and not _is_reference(leaf) else plain(leaf)


def _unknown(steps: tuple[str | int, ...], leaf: Located) -> object:
    """Return a value that no schema describes: of a misspelt key, or of a driver that is not installed."""
    hidden = steps != ("driver",) and not _is_reference(leaf) and not is_shipped(leaf.origin)
    return _UNKNOWN if hidden else plain(leaf)


def _is_reference(leaf: Located) -> bool:
    """Return whether the value is nothing but a reference."""
    written = leaf.value if leaf.text is None else leaf.text
    return written in {"", None} or (isinstance(written, str) and is_reference(written))


def _own(section: str, located: Located | None) -> Iterator[ListedSetting]:
    given = located.value if located is not None and isinstance(located.value, dict) else {}
    for key, each in given.items():
        yield ListedSetting((section, key), plain(each), *_layer_and_origin(each))
    defaults: Mapping[str, object] = RUN_DEFAULTS
    if section == "engine":
        defaults = {str(each.metadata["key"]): each.default for each in fields(EngineSettings)}
    for key, value in defaults.items():
        if key not in given:
            yield ListedSetting((section, key), value, Layer.DEFAULT.value, "default of the engine")


def _layer_and_origin(located: Located) -> tuple[str, str]:
    return located.origin.layer.value, str(located.origin)
