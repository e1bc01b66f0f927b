"""Profiles: one YAML file says which driver serves each family, with that driver's options, and the engine's settings.

Values may begin with ``~`` and contain ``${env:NAME}``; the command resolves both. ``${run:logs}`` in an option of a
metrics sink is the run's log folder, known only when there is a run. Everything else that is not known is refused:
a key that is ignored is a setting that silently does not hold.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from heron.errors import ConfigError, known, nearest
from heron.kernel.settings import EngineSettings
from heron.kernel.yaml_file import parse_yaml, read_yaml
from heron.spi.driver import DriverRef

__all__ = ["Profile", "Resolver", "load_profile", "profile_names"]

SINGLE = ("scheduler", "statemgr", "uploader", "packing")
"""The families a profile chooses exactly one driver of."""

_SECTIONS = (*SINGLE, "metricsink", "engine", "run")
_RUN_KEYS = ("log_dir", "run_dir")
_SHIPPED = Path(__file__).parent / "profiles"
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_REFERENCE = re.compile(r"\$\{(?P<source>[^:}]*):?(?P<name>[^}]*)\}")
_RUN_LOGS = "${run:logs}"

V = TypeVar("V")


class Resolver(Protocol):
    """Finds an installed driver; `heron.kernel.drivers.Drivers.resolve` is the one that commands use."""

    def __call__(self, family: str, name: str, options: Mapping[str, object]) -> DriverRef:
        """The driver as a reference; raises PluginError when there is none that works."""
        ...


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile with its drivers found. `run_dir` is "" where the system's folder for temporary files serves."""

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

    def sinks(self, log_dir: str) -> tuple[DriverRef, ...]:
        """The metrics sinks for a run whose logs are in that folder."""

        def filled(text: str, _path: str) -> str:
            return text.replace(_RUN_LOGS, log_dir)

        return tuple(
            replace(each, options={key: _mapped(value, key, filled) for key, value in each.options.items()})
            for each in self.metricsinks
        )


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
        ConfigError: when there is no such profile, or a section, key or value is wrong; names the path of the key,
            what is wrong and what is known.
        PluginError: as `resolve` does.
    """
    source = _find(name, config_path)
    sections = _sections(read_yaml(source), str(source))
    for path, text in (overrides or {}).items():
        _override(sections, path, text)
    sections = _expanded(sections, os.environ if environ is None else environ)
    for family in (*SINGLE, "metricsink"):
        if family not in sections:
            msg = f"{source}: {family}: missing; say `{family}: {{driver: NAME}}`"
            raise ConfigError(msg)
    run = _mapping(sections.get("run") or {}, "run")
    for key in run:
        if key not in _RUN_KEYS:
            msg = f"run.{key}: unknown key{nearest(key, _RUN_KEYS)}; known: {known(_RUN_KEYS)}"
            raise ConfigError(msg)
    return Profile(
        name,
        source,
        **{family: _driver(family, sections[family], family, resolve) for family in SINGLE},
        metricsinks=_sinks(sections["metricsink"], resolve),
        engine=EngineSettings.from_keys(_mapping(sections.get("engine") or {}, "engine")),
        log_dir=_text(run.get("log_dir", str(Path.home() / ".heron" / "logs")), "run.log_dir"),
        run_dir=_text(run.get("run_dir", ""), "run.run_dir"),
    )


def profile_names(config_path: Path | None = None) -> dict[str, Path]:
    """The profiles there are: name and the file that serves it."""
    names: dict[str, Path] = {}
    for folder in _folders(config_path):
        for each in sorted(folder.glob("*.yaml")):
            names.setdefault(each.stem, each)
    return names


def _folders(config_path: Path | None) -> tuple[Path, ...]:
    if config_path is not None and not config_path.is_dir():
        msg = f"--config-path: {str(config_path)!r} is not a folder; give one that holds NAME.yaml files"
        raise ConfigError(msg)
    given = () if config_path is None else (config_path,)
    return (*given, Path.home() / ".heron" / "profiles", _SHIPPED)


def _find(name: str, config_path: Path | None) -> Path:
    names = profile_names(config_path)
    if not _NAME.fullmatch(name) or name not in names:
        msg = f"no profile {name!r}{nearest(name, names)}; known: {known(names)}"
        raise ConfigError(msg)
    return names[name]


def _sections(document: object, place: str) -> dict[str, object]:
    sections = dict(_mapping(document, place))
    for key in sections:
        if key not in _SECTIONS:
            msg = f"{place}: {key}: unknown section{nearest(key, _SECTIONS)}; known: {known(_SECTIONS)}"
            raise ConfigError(msg)
    return sections


def _override(sections: dict[str, object], path: str, text: str) -> None:
    section, dot, key = path.partition(".")
    if not section or not dot or not key:
        msg = f"--set {path}: not of the form SECTION.KEY=VALUE; sections: {known(_SECTIONS)}"
        raise ConfigError(msg)
    if section not in _SECTIONS:
        msg = f"--set {path}: unknown section {section!r}{nearest(section, _SECTIONS)}; known: {known(_SECTIONS)}"
        raise ConfigError(msg)
    if section == "metricsink":
        msg = f"--set {path}: a profile has a list of metrics sinks; edit the profile instead"
        raise ConfigError(msg)
    values = _mapping(sections.get(section) or {}, section)
    sections[section] = {**values, key: parse_yaml(text, f"--set {path}")}


def _driver(family: str, section: object, place: str, resolve: Resolver) -> DriverRef:
    options = dict(_mapping(section, place))
    name = options.pop("driver", None)
    if not isinstance(name, str):
        msg = f"{place}.driver: {name!r} is not the name of a driver; see `heron plugins list`"
        raise ConfigError(msg)
    return resolve(family, name, options)


def _sinks(section: object, resolve: Resolver) -> tuple[DriverRef, ...]:
    if not isinstance(section, list):
        msg = "metricsink: not a list; say `metricsink: [{driver: NAME}]`, or `[]` for none"
        raise ConfigError(msg)
    return tuple(_driver("metricsink", each, f"metricsink[{index}]", resolve) for index, each in enumerate(section))


def _expanded(sections: dict[str, object], environ: Mapping[str, str]) -> dict[str, object]:
    def expand(text: str, path: str) -> str:
        def value(match: re.Match[str]) -> str:
            if match[0] == _RUN_LOGS and path.startswith("metricsink["):
                return match[0]
            if match["source"] != "env" or not match["name"]:
                msg = f"{path}: {match[0]} is not known; known: '${{env:NAME}}', in sinks '{_RUN_LOGS}'"
                raise ConfigError(msg)
            if match["name"] not in environ:
                msg = f"{path}: the environment has no {match['name']!r}; set it or change the profile"
                raise ConfigError(msg)
            return environ[match["name"]]

        return str(Path(text).expanduser()) if text == "~" or text.startswith("~/") else _REFERENCE.sub(value, text)

    return {section: _mapped(value, section, expand) for section, value in sections.items()}


def _mapped(value: object, path: str, change: Callable[[str, str], str]) -> object:
    """The value with every string in it changed; `change` is given the string and its path."""
    if isinstance(value, str):
        return change(value, path)
    if isinstance(value, dict):
        return {key: _mapped(each, f"{path}.{key}", change) for key, each in value.items()}
    if isinstance(value, list):
        return [_mapped(each, f"{path}[{index}]", change) for index, each in enumerate(value)]
    return value


def _mapping(value: object, place: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        msg = f"{place}: {value!r:.80} is not a section of keys and values"
        raise ConfigError(msg)
    return value


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        msg = f"{place}: {value!r:.80} is not a path"
        raise ConfigError(msg)
    return value
