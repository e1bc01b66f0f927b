"""Which drivers are installed, and the choice of one by family and name. For commands only.

stevedore does the loading. Its own list of entry points is bypassed: it is cached on disk by the modification times
of folders, which an editable install does not always change, so a new driver would stay invisible.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stevedore.driver import DriverManager

from heron.driver_kit.loading import checked_driver
from heron.errors import MissingDriverError, PluginError, known, nearest
from heron.spi.driver import Driver, DriverRef
from heron.spi.families import FAMILIES
from heron_cli.catalog.distribution import Provider, provider_of
from heron_cli.catalog.time_limit import within

__all__ = ["IMPORT_LIMIT_S", "DriverInfo", "Drivers", "catalog", "info_of", "resolve"]

IMPORT_LIMIT_S = 10.0
"""A catalog waits so long for a driver's import: the slowest known (a client of a cloud) take two or three seconds."""

_PREFIX = "heron."


@dataclass(frozen=True, slots=True)
class DriverInfo:
    """An installed plugin; `error` says why it cannot be used, or is empty.

    `source` and `place` say how it got here (see `heron_cli.catalog.distribution`), `spi_version` is the version of the
    contract that it was written for. Of an observer the family is ``hooks``, and capabilities are the hooks it follows.
    """

    family: str
    name: str
    distribution: str
    version: str
    entry: str
    source: str = ""
    place: str = ""
    spi_version: int | None = None
    capabilities: tuple[str, ...] = ()
    error: str = ""


class Drivers:
    """The drivers that were installed when this was made (reading them takes some milliseconds: make it once)."""

    def __init__(self, entry_points: Sequence[importlib.metadata.EntryPoint] | None = None) -> None:
        found = _installed() if entry_points is None else entry_points
        self._by_family: dict[str, dict[str, list[importlib.metadata.EntryPoint]]] = {
            family: defaultdict(list) for family in FAMILIES
        }
        for each in found:
            self._by_family[each.group.removeprefix(_PREFIX)][each.name].append(each)

    def resolve(self, family: str, name: str, options: Mapping[str, object]) -> DriverRef:
        """The driver of that name, imported and checked, as a reference that any process can load.

        Raises:
            PluginError: when the family is unknown, no or more than one distribution provides the name, or the
                driver does not import or was written for another version of the contract.
        """
        driver = self.driver(family, name)
        return DriverRef(family, name, f"{driver.__module__}:{driver.__qualname__}", dict(options))

    def catalog(self, family: str | None = None) -> tuple[DriverInfo, ...]:
        """Every installed driver of one family, or of all, by family and name; those that do not work as well."""
        families = FAMILIES if family is None else (family,)
        return tuple(
            self._describe(each, entry_point)
            for each in families
            for _, entry_points in sorted(self._named(each).items())
            for entry_point in entry_points
        )

    def driver(self, family: str, name: str) -> type[Driver]:
        """The driver of that name, imported and checked. Raises as `resolve` does."""
        with _stdout_elsewhere():
            return self._load(family, name)

    def _describe(self, family: str, entry_point: importlib.metadata.EntryPoint) -> DriverInfo:
        provider, name = provider_of(entry_point), entry_point.name
        info = info_of(family, entry_point, provider)
        what = f"{family} driver {name!r} of {provider.distribution} ({entry_point.value}): its import"
        try:
            with _stdout_elsewhere():
                driver = within(IMPORT_LIMIT_S, what, lambda: self._load(family, name))
        except PluginError as error:
            return replace(info, error=str(error))
        return replace(info, spi_version=driver.spi_version, capabilities=tuple(sorted(driver.capabilities)))

    def _named(self, family: str) -> dict[str, list[importlib.metadata.EntryPoint]]:
        if family not in self._by_family:
            msg = f"no driver family {family!r}{nearest(family, FAMILIES)}; known: {known(FAMILIES)}"
            raise PluginError(msg)
        return self._by_family[family]

    def _load(self, family: str, name: str) -> type[Driver]:
        named = self._named(family)
        what = f"{family} driver {name!r}"
        if name not in named:
            msg = (
                f"no {what} is installed{nearest(name, named)}; installed: {known(named)}; "
                f"to add it: `pip install heron-{family}-{name}`"
            )
            raise MissingDriverError(msg, f"heron-{family}-{name}")
        entry_points = named[name]
        if len(entry_points) > 1:
            providers = " and ".join(sorted(provider_of(each).distribution for each in entry_points))
            msg = f"{what} is provided by {providers}; uninstall all but one of them"
            raise PluginError(msg)
        distribution = provider_of(entry_points[0]).distribution
        try:
            found = _OneDriver(entry_points[0]).driver
        except (Exception, SystemExit) as error:
            msg = (
                f"{what} of {distribution} ({entry_points[0].value}) does not import: "
                f"{type(error).__name__}: {error}; reinstall it or what it needs"
            )
            raise PluginError(msg) from error
        return checked_driver(found, FAMILIES[family], what, distribution)


class _OneDriver(DriverManager[object]):
    """stevedore's driver manager, given its entry point instead of looking it up in the cache."""

    def __init__(self, entry_point: importlib.metadata.EntryPoint) -> None:
        self._entry_point = entry_point
        super().__init__(entry_point.group, entry_point.name)

    def list_entry_points(self) -> list[importlib.metadata.EntryPoint]:
        return [self._entry_point]


def _installed() -> tuple[importlib.metadata.EntryPoint, ...]:
    everything = importlib.metadata.entry_points()
    return tuple(each for family in FAMILIES for each in everything.select(group=_PREFIX + family))


def _stdout_elsewhere() -> contextlib.AbstractContextManager[object]:
    """What a plugin prints while it is imported must not stand in the middle of a command's output."""
    return contextlib.redirect_stdout(sys.stderr)


def info_of(family: str, entry_point: importlib.metadata.EntryPoint, provider: Provider) -> DriverInfo:
    """What is known of a plugin without loading it."""
    return DriverInfo(
        family,
        entry_point.name,
        provider.distribution,
        provider.version,
        entry_point.value,
        provider.source.value,
        provider.place,
    )


def resolve(family: str, name: str, options: Mapping[str, object]) -> DriverRef:
    """`Drivers.resolve` on what is installed now."""
    return Drivers().resolve(family, name, options)


def catalog(family: str | None = None) -> tuple[DriverInfo, ...]:
    """`Drivers.catalog` on what is installed now."""
    return Drivers().catalog(family)
