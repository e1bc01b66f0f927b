"""From the name of a profile to drivers with their options, and to everything that is wrong on the way."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from heron.errors import ConfigError, HeronError, known, nearest
from heron.kernel.settings import EngineSettings, checked_setting
from heron.spi.driver import DriverRef
from heron_cli.profiles.findings import Findings, Problem
from heron_cli.profiles.layered import Layered, Overlay, read_layers
from heron_cli.profiles.layers import RUN_KEYS, SINGLE, SINKS, Sections
from heron_cli.profiles.located import Placed, Step, plain
from heron_cli.profiles.profile import Profile
from heron_cli.profiles.references import References
from heron_cli.profiles.section import Resolver, driver_section, read_reference

__all__ = ["RUN_DEFAULTS", "ProfileReading", "load_profile", "read_profile"]

RUN_DEFAULTS = {"log_dir": "~/.heron/logs", "run_dir": ""}


@dataclass(frozen=True, slots=True)
class ProfileReading:
    """What came of reading a profile: a usable one, or else problems."""

    profile: Profile | None
    problems: tuple[Problem, ...]


def load_profile(
    name: str,
    resolve: Resolver,
    *,
    config_path: Path | None = None,
    overrides: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Profile:
    """Finds the profile in `config_path`, ``~/.heron/profiles`` or among those shipped, in this order, and reads it.

    `overrides` are ``{"section.key": value}`` as a command's ``--set`` gives them; a value is read as YAML.

    Raises:
        ConfigError: when there is no such profile, or a section, key or value is wrong; names where it was given, the
            path of the key, what is wrong and what is known. Of several mistakes it is the first.
        PluginError: as `resolve` does.
    """
    findings = Findings()
    profile = _read(name, resolve, config_path, _overlay(overrides, environ), findings)
    findings.check(f"`heron profiles check {name}`")
    assert profile is not None  # noqa: S101 - without problems there is one
    return profile


def read_profile(
    name: str,
    resolve: Resolver,
    *,
    config_path: Path | None = None,
    overrides: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> ProfileReading:
    """Like `load_profile`, but tells of all mistakes and raises none."""
    findings = Findings()
    try:
        profile = _read(name, resolve, config_path, _overlay(overrides, environ), findings)
    except HeronError as error:
        profile = None
        findings.add("", error)
    return ProfileReading(None if findings.problems else profile, tuple(findings.problems))


def _overlay(overrides: Mapping[str, str] | None, environ: Mapping[str, str] | None) -> Overlay:
    return Overlay(overrides or {}, os.environ if environ is None else environ)


def _read(
    name: str, resolve: Resolver, config_path: Path | None, overlay: Overlay, findings: Findings
) -> Profile | None:
    layered = read_layers(name, config_path, overlay, findings)
    references = References(overlay.environ, findings)
    return _Reader(
        layered,
        {key: references.resolved(section, (key,)) for key, section in layered.sections.items()},
        resolve,
        findings,
    ).profile()


class _Reader:
    """Makes a profile of sections whose references are resolved; goes on after a mistake, to find the others."""

    def __init__(self, layered: Layered, sections: Sections, resolve: Resolver, findings: Findings) -> None:
        self._layered = layered
        self._sections = sections
        self._resolve = resolve
        self._findings = findings

    def profile(self) -> Profile | None:
        scheduler, statemgr, uploader, packing = (self._single(family) for family in SINGLE)
        sinks = self._sinks()
        engine = self._engine()
        run = self._run()
        if self._findings.problems or not (scheduler and statemgr and uploader and packing and engine):
            return None
        return Profile(
            self._layered.name,
            self._layered.files[0],
            scheduler,
            statemgr,
            uploader,
            packing,
            sinks,
            engine,
            log_dir=str(Path(run["log_dir"]).expanduser()),
            run_dir=run["run_dir"],
            secret_variables=tuple(sorted(self._findings.variables)),
        )

    def _single(self, family: str) -> DriverRef | None:
        section = self._sections.get(family)
        if section is None:
            self._findings.add(f"{self._layered.files[0]}: {family}", f"missing; say `{family}: {{driver: NAME}}`")
            return None
        return self._driver(section, (family,))

    def _sinks(self) -> tuple[DriverRef, ...]:
        section = self._sections.get(SINKS)
        if section is None or not isinstance(section.value, list):
            remedy = f"missing; say `{SINKS}: [{{driver: NAME}}]`, or `[]` for none"
            self._findings.add(f"{self._layered.files[0]}: {SINKS}", remedy)
            return ()
        found = (self._driver(each, (SINKS, index)) for index, each in enumerate(section.value))
        return tuple(each for each in found if each is not None)

    def _driver(self, section: Placed, path: tuple[Step, ...]) -> DriverRef | None:
        found = driver_section(section, path, self._resolve, self._findings)
        return None if found is None else found.checked(self._findings)

    def _engine(self) -> EngineSettings | None:
        values: dict[str, object] = {}
        for key, placed in _items(self._sections.get("engine")):
            try:
                field, value = checked_setting(key, engine_value(key, placed))
                values[field] = value
            except ConfigError as error:
                if not self._findings.knows(f"engine.{key}"):
                    text = str(error).removeprefix(f"engine.{key}: ")
                    self._findings.add(f"engine.{key}", text, placed.origin)
        if any(each.path.startswith("engine.") for each in self._findings.problems):
            return None
        try:
            return EngineSettings.from_keys(replace(EngineSettings(), **values).to_keys())  # type: ignore[arg-type]
        except ConfigError as error:  # two settings that do not go together
            self._findings.add("", error)
            return None

    def _run(self) -> dict[str, str]:
        run = dict(RUN_DEFAULTS)
        for key, placed in _items(self._sections.get("run")):
            value = placed.value if placed.text is None else placed.text
            if key not in RUN_KEYS:
                text = f"unknown key{nearest(key, RUN_KEYS)}; known: {known(RUN_KEYS)}"
                self._findings.add(f"run.{key}", text, placed.origin)
            elif not isinstance(value, str):
                self._findings.add(f"run.{key}", f"{plain(placed)!r:.80} is not a path", placed.origin)
            else:
                run[key] = value
        return run


def engine_value(key: str, placed: Placed) -> object:
    """The value of an engine setting, as text where it is text."""
    is_text = any(each.metadata["key"] == key and isinstance(each.default, str) for each in fields(EngineSettings))
    if placed.text is None:
        return plain(placed)
    return placed.text if is_text else plain(read_reference(placed))


def _items(section: Placed | None) -> Iterable[tuple[str, Placed]]:
    return section.value.items() if section is not None and isinstance(section.value, dict) else ()
