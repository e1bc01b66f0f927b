"""The installed plugins that no profile chooses: compat plugins, observers, and those of unknown groups.

A compat plugin runs programs unchanged that were written for a foreign package or system. The program needs it, and no
profile names it. Its entry point, in the group ``heron.compat``, names a class whose `package` is that package or
system; see `heron.spi.compat`.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from heron.driver_kit.loading import load_object
from heron.errors import ConfigError, MissingDriverError, PluginError, known, nearest
from heron.spi.families import FAMILIES
from heron_cli.catalog.drivers import GROUP_PREFIX, IMPORT_LIMIT_S, DriverInfo, info_of, provider_of, stdout_to_stderr
from heron_cli.catalog.third_party import within
from heron_cli.entry_points import installed_points
from heron_cli.profiles.overrides import is_switched_off

if TYPE_CHECKING:
    from heron.kernel.observers import Observers

__all__ = [
    "COMPAT_FAMILY",
    "KINDS",
    "OBSERVER_FAMILY",
    "check_settings",
    "check_without",
    "compat_catalog",
    "observer_catalog",
    "observer_entries",
    "service_module",
    "simulation_entry",
    "unknown_groups",
]

COMPAT_FAMILY = "compat"
OBSERVER_FAMILY = "hooks"
KINDS = (*FAMILIES, COMPAT_FAMILY, OBSERVER_FAMILY)
"""The families of `heron plugins`: those of drivers, compat plugins and observers."""

_SERVICE_FAMILY = "service"
_SIMULATION_FAMILY = "simulation"
_CONFIG_FAMILY = "config"
_OTHER_GROUPS = (
    "command",
    _CONFIG_FAMILY,
    _SERVICE_FAMILY,
    "simulation",
)  # their entry points are no plugins that a user chooses


def compat_catalog() -> tuple[DriverInfo, ...]:
    """Return every installed compat plugin by name; its capability is the package or system that it serves."""
    return tuple(_describe(COMPAT_FAMILY, each, "compat plugin", _served) for each in _points(COMPAT_FAMILY))


def observer_catalog() -> tuple[DriverInfo, ...]:
    """Return every installed observer by name; its capabilities are the hooks that it implements."""
    return tuple(_describe(OBSERVER_FAMILY, each, "observer", _followed) for each in _points(OBSERVER_FAMILY))


def observer_entries(without: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the entries, ``module:object``, of the installed observers that are not switched off."""
    used = (each for each in _points(OBSERVER_FAMILY) if not is_switched_off(OBSERVER_FAMILY, each.name, without))
    return tuple(sorted(each.value for each in used))


def service_module(name: str, distribution: str) -> str:
    """Return the module of an installed service, which runs beside topologies.

    Raises:
        MissingDriverError: when it is not installed; names the distribution that brings it.
    """
    for point in _points(_SERVICE_FAMILY):
        if point.name == name:
            return point.module
    msg = f"the section {name!r} needs {distribution}: `pip install {distribution}`, or take the section out"
    raise MissingDriverError(msg, distribution)


def simulation_entry() -> str:
    """Return the entry, ``module:object``, of the simulation from seeds.

    Raises:
        MissingDriverError: when it is not installed; names the distribution that brings it.
    """
    for point in _points(_SIMULATION_FAMILY):
        return point.value
    distribution = "heron-testing[seeds]"
    msg = f"--seed: the simulation from seeds is not installed: `pip install '{distribution}'`"
    raise MissingDriverError(msg, distribution)


def check_settings(config: Mapping[str, object], place: str) -> None:
    """Check settings of a topology that a plugin reads, with the function of its entry point in ``heron.config``.

    The entry point has the name of the setting. The function gets the value, and raises `ValueError`.

    Raises:
        ConfigError: when a value is refused; names the setting.
    """
    for point in _points(_CONFIG_FAMILY) if config else ():
        if point.name in config:
            try:
                cast("Callable[[object], None]", load_object(point.value, f"check of {point.name}"))(config[point.name])
            except ValueError as error:
                msg = f"{place}: {point.name}: {error}"
                raise ConfigError(msg) from error


def unknown_groups() -> tuple[DriverInfo, ...]:
    """Return the plugins whose entry-point group begins with ``heron.`` and is unknown; each has an error."""
    groups = {f"{GROUP_PREFIX}{each}" for each in (*KINDS, *_OTHER_GROUPS)}
    installed = installed_points()
    found = []
    for group in installed.groups:
        if group in groups or not group.startswith(GROUP_PREFIX):
            continue
        for point in installed.select(group=group):
            info = info_of(group.removeprefix(GROUP_PREFIX), point, provider_of(point))
            msg = (
                f"entry-point group {group!r} is unknown{nearest(group, groups)}; known: {known(groups)}; "
                f"correct it in the pyproject.toml of {info.distribution}"
            )
            found.append(replace(info, error=msg))
    return tuple(sorted(found, key=lambda each: (each.family, each.name)))


def check_without(without: Sequence[str]) -> None:
    """Check that each name of ``--without`` is that of an installed driver or observer.

    Raises:
        PluginError: when one is not; names the nearest.
    """
    if not without:
        return  # a command that switches nothing off may need no metadata
    installed = installed_points()
    families = (*FAMILIES, OBSERVER_FAMILY)
    names = {(family, each.name) for family in families for each in installed.select(group=GROUP_PREFIX + family)}
    choices = {name for _, name in names} | {f"{family}.{name}" for family, name in names}
    for each in without:
        if each not in choices:
            hint = nearest(each, choices)
            msg = f"--without {each}: no plugin of that name is installed{hint}; see `heron plugins list`"
            raise PluginError(msg)


def _points(family: str) -> list[importlib.metadata.EntryPoint]:
    found = installed_points().select(group=GROUP_PREFIX + family)
    return sorted(found, key=lambda each: (each.name, each.value))


def _describe(
    family: str,
    entry_point: importlib.metadata.EntryPoint,
    kind: str,
    load: Callable[[str, DriverInfo], tuple[str, ...]],
) -> DriverInfo:
    info = info_of(family, entry_point, provider_of(entry_point))
    what = f"{kind} {info.name!r} of {info.distribution} ({info.entry})"
    try:
        with stdout_to_stderr():
            return replace(info, capabilities=within(IMPORT_LIMIT_S, f"{what}: its import", lambda: load(what, info)))
    except PluginError as error:
        return replace(info, error=str(error))


def _served(what: str, info: DriverInfo) -> tuple[str, ...]:
    package = getattr(load_object(info.entry, what), "package", None)
    if not isinstance(package, str):
        msg = f"{what}: its class names no package; upgrade with `pip install -U {info.distribution}`"
        raise PluginError(msg)
    return (package,)


def _followed(_what: str, info: DriverInfo) -> tuple[str, ...]:
    observers = cast("type[Observers]", load_object("heron.kernel.observers:Observers"))()  # brings pluggy
    observers.add(info.entry, load_object(info.entry, "observer"))
    return observers.followed()
