"""Reads a profile: merges its layers, resolves references, finds drivers, collects all mistakes."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from heron.errors import ConfigError, HeronError, known, nearest
from heron.kernel.settings import EngineSettings, checked_setting
from heron.spi.driver import DriverRef
from heron.spi.engine import PipelineChoices
from heron_cli.profiles.changes import changed, command_changes, environment_changes
from heron_cli.profiles.findings import Findings, Problem
from heron_cli.profiles.health_choice import HealthChoice, read_health
from heron_cli.profiles.layers import (
    CHECKPOINT,
    DRIVER,
    ENGINE,
    ENGINE_SETTINGS,
    HEALTH,
    RUN_KEYS,
    SINGLE,
    SINKS,
    STATE,
    STORE,
    Sections,
    known_sections,
    merge_sections,
)
from heron_cli.profiles.located import Located, Step, plain
from heron_cli.profiles.overrides import is_switched_off
from heron_cli.profiles.references import RUN_LOGS, References
from heron_cli.profiles.search import read_chain
from heron_cli.profiles.section import Resolver, driver_section, read_reference

__all__ = [
    "ALL_FAMILIES",
    "RUN_DEFAULTS",
    "Layered",
    "Overlay",
    "Profile",
    "ProfileReading",
    "load_profile",
    "read_layers",
    "read_profile",
]

ALL_FAMILIES = (*SINGLE, CHECKPOINT, STATE, ENGINE, STORE, HEALTH, SINKS)
"""The families whose drivers a profile names."""

_HERON = "heron"
"""The name of the engine that needs no driver."""

RUN_DEFAULTS = {"log_dir": "~/.heron/logs", "run_dir": ""}


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile that can be used: drivers found, options checked, references resolved.

    `run_dir` is "" when the system's folder for temporary files is used. `secret_variables` are the variables of the
    environment that hold secrets of drivers; no process of a run may inherit them.

    `checkpoint` is None when the profile has no such section: it cannot run topologies that take checkpoints. `state`
    has the options of a state backend, for topologies that name it. `pipelines` is the engine that runs pipelines; None
    is Heron itself. `store` keeps the views of pipelines; None if the profile has no such section.
    `health` is None when no health manager runs beside a topology.

    A driver of a family that the reader did not need is a reference without an entry, which does not open.
    """

    name: str
    source: Path
    scheduler: DriverRef
    statemgr: DriverRef
    uploader: DriverRef
    packing: DriverRef
    metricsinks: tuple[DriverRef, ...]
    engine: EngineSettings
    log_dir: str
    run_dir: str
    secret_variables: tuple[str, ...] = ()
    checkpoint: DriverRef | None = None
    state: DriverRef | None = None
    pipelines: DriverRef | None = None
    store: DriverRef | None = None
    health: HealthChoice | None = None

    @property
    def singles(self) -> tuple[DriverRef, ...]:
        """The drivers of the families of which a profile has one, without the sinks."""
        always = (self.scheduler, self.statemgr, self.uploader, self.packing)
        chosen = (self.checkpoint, self.state, self.pipelines, self.store)
        return (*always, *(each for each in chosen if each is not None))

    @property
    def choices(self) -> PipelineChoices:
        """What pipelines get."""
        return PipelineChoices(self.pipelines, self.store)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts in the options of all drivers that no message may contain."""
        policies = self.health.policies if self.health else ()
        return tuple(text for each in (*self.singles, *self.metricsinks, *policies) for text in each.secrets)

    def sinks(self, log_dir: str) -> tuple[DriverRef, ...]:
        """The metrics sinks for a run whose logs are in that folder."""
        return tuple(
            replace(each, options={key: _with_logs(value, log_dir) for key, value in each.options.items()})
            for each in self.metricsinks
        )


def _with_logs(value: object, log_dir: str) -> object:
    if isinstance(value, str):
        return value.replace(RUN_LOGS, log_dir)
    if isinstance(value, dict):
        return {key: _with_logs(each, log_dir) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_logs(each, log_dir) for each in value]
    return value


@dataclass(frozen=True, slots=True)
class ProfileReading:
    """The result of reading a profile: a usable profile, or else problems."""

    profile: Profile | None
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Overlay:
    """The layers above the files: ``--set`` as ``{"section.key": value}``, and the environment."""

    command: Mapping[str, str]
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Layered:
    """The merged sections of a profile, with unresolved references and no drivers; its own file is first in `files`."""

    name: str
    files: tuple[Path, ...]
    sections: Sections


def load_profile(
    name: str,
    resolve: Resolver,
    *,
    config_path: Path | None = None,
    overrides: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    needed: Collection[str] = ALL_FAMILIES,
    without: Collection[str] = (),
) -> Profile:
    """Find the profile in `config_path`, ``~/.heron/profiles`` or among those shipped, in this order, and read it.

    `overrides` are ``{"section.key": value}`` as a command's ``--set`` gives them; a value is read as YAML. Only the
    drivers of the families in `needed` are looked for; mistakes in the sections of the others are not found. Sinks
    that `without` names (``NAME`` or ``metricsink.NAME``) are left out.

    Raises:
        ConfigError: when the profile does not exist, or a section, key or value is wrong. The message names the place,
            the path of the key, the fault and the known choices. With several mistakes, the error is about the first.
        PluginError: as `resolve` does.
    """
    findings = Findings()
    wanted = _Wanted(needed, without)
    profile = _read(name, resolve, config_path, _overlay(overrides, environ), findings, wanted)
    findings.check(f"`heron profiles check {name}`")
    assert profile is not None  # noqa: S101 - findings without problems imply a profile
    return profile


def read_profile(
    name: str,
    resolve: Resolver,
    *,
    config_path: Path | None = None,
    overrides: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    without: Collection[str] = (),
) -> ProfileReading:
    """Read a profile as `load_profile` does, but return all mistakes instead of raising the first."""
    findings = Findings()
    try:
        wanted = _Wanted(ALL_FAMILIES, without)
        profile = _read(name, resolve, config_path, _overlay(overrides, environ), findings, wanted)
    except HeronError as error:
        profile = None
        findings.add("", error)
    return ProfileReading(None if findings.problems else profile, tuple(findings.problems))


def read_layers(name: str, config_path: Path | None, overlay: Overlay, findings: Findings) -> Layered:
    """Read the files of a profile and merge all layers; an unknown section or key is a problem.

    Raises:
        ConfigError: when the profile does not exist, or a file cannot be read.
    """
    chain = read_chain(name, config_path)
    sections: Sections = {}
    for each in reversed(chain):
        sections = merge_sections(sections, known_sections(each.sections, findings))
    sections = changed(sections, environment_changes(overlay.environ, findings), findings)
    sections = changed(sections, command_changes(overlay.command, findings), findings)
    return Layered(name, tuple(each.path for each in chain), sections)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The families whose drivers a reader needs, and the names that are switched off."""

    families: Collection[str]
    without: Collection[str]


def _overlay(overrides: Mapping[str, str] | None, environ: Mapping[str, str] | None) -> Overlay:
    return Overlay(overrides or {}, os.environ if environ is None else environ)


def _read(
    name: str,
    resolve: Resolver,
    config_path: Path | None,
    overlay: Overlay,
    findings: Findings,
    wanted: _Wanted,
) -> Profile | None:
    layered = read_layers(name, config_path, overlay, findings)
    references = References(overlay.environ, findings)
    resolved = {
        key: references.resolved(section, (ENGINE if key == ENGINE_SETTINGS else key,))
        for key, section in layered.sections.items()
        if key in wanted.families or key not in ALL_FAMILIES
    }
    return _Reader(layered, resolved, resolve, findings, wanted).profile()


class _Reader:
    """Makes a profile of sections whose references are resolved; continues after a mistake, to find the others."""

    def __init__(
        self, layered: Layered, sections: Sections, resolve: Resolver, findings: Findings, wanted: _Wanted
    ) -> None:
        self._layered = layered
        self._sections = sections
        self._resolve = resolve
        self._findings = findings
        self._wanted = wanted

    def profile(self) -> Profile | None:
        scheduler, statemgr, uploader, packing = (self._single(family) for family in SINGLE)
        checkpoint = self._single(CHECKPOINT) if CHECKPOINT in self._layered.sections else None
        state = self._single(STATE) if STATE in self._layered.sections else None
        pipelines, store = self._pipelines(), self._store()
        sinks = self._sinks() if SINKS in self._wanted.families else ()
        health = self._health()
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
            checkpoint=checkpoint,
            state=state,
            pipelines=pipelines,
            store=store,
            health=health,
        )

    def _single(self, family: str) -> DriverRef | None:
        if family not in self._wanted.families:
            return DriverRef(family, _driver_name(self._layered.sections.get(family)), "")
        section = self._sections.get(family)
        if section is None:
            self._findings.add(f"{self._layered.files[0]}: {family}", f"missing; write `{family}: {{driver: NAME}}`")
            return None
        return self._driver(section, (family,))

    def _pipelines(self) -> DriverRef | None:
        section = self._sections.get(ENGINE)
        if section is None or not isinstance(section.value, dict):
            return None
        if DRIVER not in section.value:  # a misspelt setting, rather than an option of no driver
            for key, each in section.value.items():
                self._setting(key, each)
            return None
        named = section.value[DRIVER]
        if named.value == _HERON:
            for key in section.value.keys() - {DRIVER}:
                text = f"{_HERON!r} has no options; leave the key out, or name another driver"
                self._findings.add(f"{ENGINE}.{key}", text, section.value[key].origin)
            return None
        return self._driver(section, (ENGINE,))

    def _store(self) -> DriverRef | None:
        if STORE not in self._layered.sections:
            return None
        store = self._single(STORE)
        if store is not None and store.secrets:
            origin = self._sections[STORE].origin
            text = (
                "its options have a secret, and travel with topologies; give the path of a file with it: password_file"
            )
            self._findings.add(STORE, text, origin)
        return store

    def _health(self) -> HealthChoice | None:
        section = self._sections.get(HEALTH)
        return None if section is None else read_health(section, self._resolve, self._findings)

    def _sinks(self) -> tuple[DriverRef, ...]:
        section = self._sections.get(SINKS)
        if section is None or not isinstance(section.value, list):
            remedy = f"missing; write `{SINKS}: [{{driver: NAME}}]`, or `[]` for none"
            self._findings.add(f"{self._layered.files[0]}: {SINKS}", remedy)
            return ()
        found = (
            self._driver(each, (SINKS, index))
            for index, each in enumerate(section.value)
            if not is_switched_off(SINKS, _driver_name(each), self._wanted.without)
        )
        return tuple(each for each in found if each is not None)

    def _driver(self, section: Located, path: tuple[Step, ...]) -> DriverRef | None:
        found = driver_section(section, path, self._resolve, self._findings)
        return None if found is None else found.checked(self._findings)

    def _engine(self) -> EngineSettings | None:
        values = dict(
            found
            for key, located in _items(self._sections.get(ENGINE_SETTINGS))
            if (found := self._setting(key, located)) is not None
        )
        if any(each.path.startswith("engine.") for each in self._findings.problems):
            return None
        try:
            return EngineSettings.from_keys(replace(EngineSettings(), **values).to_keys())  # type: ignore[arg-type]
        except ConfigError as error:  # two settings that contradict each other
            self._findings.add("", error)
            return None

    def _setting(self, key: str, located: Located) -> tuple[str, object] | None:
        """The field of `EngineSettings` for a key, with its value; None if one of them is wrong."""
        try:
            return checked_setting(key, _engine_value(key, located))
        except ConfigError as error:
            if not self._findings.has(f"engine.{key}"):
                text = str(error).removeprefix(f"engine.{key}: ")
                self._findings.add(f"engine.{key}", text, located.origin)
        return None

    def _run(self) -> dict[str, str]:
        run = dict(RUN_DEFAULTS)
        for key, located in _items(self._sections.get("run")):
            value = located.value if located.text is None else located.text
            if key not in RUN_KEYS:
                text = f"unknown key{nearest(key, RUN_KEYS)}; known: {known(RUN_KEYS)}"
                self._findings.add(f"run.{key}", text, located.origin)
            elif not isinstance(value, str):
                self._findings.add(f"run.{key}", f"{plain(located)!r:.80} is not a path", located.origin)
            else:
                run[key] = value
        return run


def _engine_value(key: str, located: Located) -> object:
    """Return the value of an engine setting; as text where the setting is text."""
    is_text = any(each.metadata["key"] == key and isinstance(each.default, str) for each in fields(EngineSettings))
    if located.text is None:
        return plain(located)
    return located.text if is_text else plain(read_reference(located))


def _driver_name(section: Located | None) -> str:
    driver = section.value.get(DRIVER) if section is not None and isinstance(section.value, dict) else None
    return str(driver.value) if driver is not None else ""


def _items(section: Located | None) -> Iterable[tuple[str, Located]]:
    return section.value.items() if section is not None and isinstance(section.value, dict) else ()
