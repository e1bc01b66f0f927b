"""The installed drivers: the origin of each, and the choice of one by family and name. For commands only.

stevedore loads the drivers. Its own list of entry points is bypassed: stevedore caches it on disk by the modification
times of folders, which an editable install does not always change, so a new driver would stay invisible.
"""

from __future__ import annotations

import contextlib
import enum
import importlib.metadata
import json
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from stevedore.driver import DriverManager

from heron.driver_kit.loading import checked_driver, deprecation, refusal_by_source
from heron.errors import MissingDriverError, PluginError, known, nearest
from heron.spi.driver import Driver, DriverRef
from heron.spi.families import FAMILIES
from heron_cli.catalog.third_party import within
from heron_cli.entry_points import EntryPoints, installed_points
from heron_cli.profiles.overrides import is_switched_off

__all__ = [
    "GROUP_PREFIX",
    "IMPORT_LIMIT_S",
    "SHIPPED",
    "DriverInfo",
    "Drivers",
    "Provider",
    "SourceKind",
    "info_of",
    "provider_of",
    "stdout_to_stderr",
]

IMPORT_LIMIT_S = 10.0
"""The longest that a catalog waits for the import of a driver; the slowest known (a cloud client) takes 2 to 3 s."""

_REDIRECTING = threading.RLock()  # a driver may load another one

GROUP_PREFIX = "heron."
"""The entry-point group of a family is this prefix and the name of the family."""

SHIPPED: Mapping[str, tuple[str, ...]] = {
    "scheduler": (
        "aurora",
        "ecs",
        "kubernetes",
        "local",
        "marathon",
        "mesos",
        "nomad",
        "slurm",
        "spark",
        "yarn",
    ),
    "statemgr": ("hdfs", "localfs", "zookeeper"),
    "uploader": ("hdfs", "http", "localfs", "oci", "s3"),
    "packing": ("ffd", "rcrr", "roundrobin"),
    "metricsink": ("file", "graphite", "otlp", "prometheus", "scribe"),
    "serializer": ("arrow", "msgpack"),
    "checkpoint": ("hdfs", "localfs", "s3"),
    "state": ("lmdb",),
    "store": ("postgresql", "redis", "sqlite"),
    "task": ("inspector",),
}
"""The drivers that the project ships, each as the distribution ``heron-FAMILY-NAME``."""


class SourceKind(enum.StrEnum):
    """How a distribution came to be on the path."""

    WHEEL = "wheel"
    """Installed; `Provider.place` is its source, or the folder that it was installed into."""
    EDITABLE = "editable"
    """Used from its source folder: a change of its source works at once."""
    PATH = "path"
    """Found in a folder of the path without an installer: ``PYTHONPATH``, ``--plugin-path``."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A distribution with its version; `place` is a folder or URL (PEP 610)."""

    distribution: str
    version: str
    source: SourceKind
    place: str


@dataclass(frozen=True, slots=True)
class DriverInfo:
    """An installed plugin; `error` says why it cannot be used, or is empty.

    `source` and `place` are those of its `Provider`. `spi_version` is the version of the contract that it was written
    for; `warning` says that this version is deprecated, or is empty. The family of an observer is ``hooks``, and its
    capabilities are the hooks that it implements.
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
    warning: str = ""


class Drivers:
    """The drivers that are installed when the object is made, which reads the metadata of all distributions."""

    def __init__(
        self,
        entry_points: Sequence[importlib.metadata.EntryPoint] | None = None,
        *,
        without: Sequence[str] = (),
    ) -> None:
        """`without` names drivers that are not to be used: ``NAME`` or ``FAMILY.NAME``."""
        self._found: EntryPoints = (
            installed_points() if entry_points is None else importlib.metadata.EntryPoints(entry_points)
        )
        self._without = tuple(without)

    def resolve(self, family: str, name: str, options: Mapping[str, object]) -> DriverRef:
        """Import and check the driver of that name; return it as a reference that any process can load.

        Raises:
            PluginError: when the family is unknown, no or more than one distribution provides the name, or the
                driver does not import or was written for another version of the contract.
        """
        driver = self.driver(family, name)
        return DriverRef(family, name, f"{driver.__module__}:{driver.__qualname__}", dict(options))

    def catalog(self, family: str | None = None) -> tuple[DriverInfo, ...]:
        """Return every installed driver of one family, or of all, by family and name, broken ones included."""
        families = FAMILIES if family is None else (family,)
        return tuple(
            self._describe(each, entry_point)
            for each in families
            for _, entry_points in sorted(self._named(each).items())
            for entry_point in entry_points
        )

    def driver(self, family: str, name: str) -> type[Driver]:
        """Import and check the driver of that name. Raises as `resolve` does."""
        with stdout_to_stderr():
            return self._load(family, name)

    def _describe(self, family: str, entry_point: importlib.metadata.EntryPoint) -> DriverInfo:
        provider, name = provider_of(entry_point), entry_point.name
        info = info_of(family, entry_point, provider)
        what = f"{family} driver {name!r} of {provider.distribution} ({entry_point.value}): its import"
        try:
            with stdout_to_stderr():
                driver = within(IMPORT_LIMIT_S, what, lambda: self._load(family, name))
        except PluginError as error:
            return replace(info, error=str(error))
        warning = deprecation(driver, FAMILIES[family], f"{family} driver {name!r}", provider.distribution)
        return replace(
            info,
            spi_version=driver.spi_version,
            capabilities=tuple(sorted(driver.capabilities)),
            warning=warning,
        )

    def _named(self, family: str) -> dict[str, list[importlib.metadata.EntryPoint]]:
        if family not in FAMILIES:
            msg = f"no driver family {family!r}{nearest(family, FAMILIES)}; known: {known(FAMILIES)}"
            raise PluginError(msg)
        named: dict[str, list[importlib.metadata.EntryPoint]] = defaultdict(list)
        for each in self._found.select(group=GROUP_PREFIX + family):
            named[each.name].append(each)
        return named

    def _load(self, family: str, name: str) -> type[Driver]:
        named = self._named(family)
        what = f"{family} driver {name!r}"
        if name not in named:
            raise _missing(family, name, tuple(named))
        if is_switched_off(family, name, self._without):
            msg = f"{what} is switched off by --without; name another driver, or leave out --without"
            raise PluginError(msg)
        entry_points = named[name]
        if len(entry_points) > 1:
            providers = " and ".join(sorted(provider_of(each).distribution for each in entry_points))
            msg = f"{what} is provided by {providers}; uninstall all but one of them"
            raise PluginError(msg)
        distribution = provider_of(entry_points[0]).distribution
        try:
            found = _OneDriver(entry_points[0]).driver
        except (Exception, SystemExit) as error:
            msg = refusal_by_source(entry_points[0].value, FAMILIES[family], what, distribution) or (
                f"{what} of {distribution} ({entry_points[0].value}) does not import: "
                f"{type(error).__name__}: {error}; reinstall it or what it needs"
            )
            raise PluginError(msg) from error
        return checked_driver(found, FAMILIES[family], what, distribution)


def info_of(family: str, entry_point: importlib.metadata.EntryPoint, provider: Provider) -> DriverInfo:
    """Return what is known of a plugin without loading it."""
    return DriverInfo(
        family,
        entry_point.name,
        provider.distribution,
        provider.version,
        entry_point.value,
        provider.source.value,
        provider.place,
    )


def provider_of(entry_point: importlib.metadata.EntryPoint) -> Provider:
    """Return the distribution that an entry point belongs to."""
    found = entry_point.dist
    if found is None:
        return Provider("an unknown distribution", "", SourceKind.PATH, "")
    folder = str(Path(str(found.locate_file(""))))
    url, editable = _direct_url(found)
    if url:
        return Provider(found.name, found.version, SourceKind.EDITABLE if editable else SourceKind.WHEEL, url)
    kind = SourceKind.WHEEL if found.read_text("INSTALLER") else SourceKind.PATH
    return Provider(found.name, found.version, kind, folder)


class _OneDriver(DriverManager[object]):
    """stevedore's driver manager for one entry point, without its cache."""

    def __init__(self, entry_point: importlib.metadata.EntryPoint) -> None:
        self._entry_point = entry_point
        super().__init__(entry_point.group, entry_point.name)

    def list_entry_points(self) -> list[importlib.metadata.EntryPoint]:
        return [self._entry_point]


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Keep what a plugin prints during its import out of the command's output.

    One thread at a time: of two at once, the later one would put the stderr of the first back as the output.
    """
    with _REDIRECTING, contextlib.redirect_stdout(sys.stderr):
        yield


def _missing(family: str, name: str, installed: Sequence[str]) -> MissingDriverError:
    """Return the error for a driver that is not installed; it suggests only distributions that exist."""
    shipped = SHIPPED.get(family, ())
    start = f"no {family} driver {name!r} is installed"
    if name in shipped:
        distribution = f"heron-{family}-{name}"
        msg = f"{start}; installed: {known(installed)}; to add it: `pip install {distribution}`"
        return MissingDriverError(msg, distribution)
    hint = nearest(name, {*installed, *shipped})
    close = next((each for each in shipped if each not in installed and repr(each) in hint), "")
    add = f"; to add {close!r}: `pip install heron-{family}-{close}`" if close else ""
    return MissingDriverError(f"{start}{hint}; installed: {known(installed)}{add}")


def _direct_url(found: importlib.metadata.Distribution) -> tuple[str, bool]:
    """Return the place that the installer was given, "" for a name of an index, and whether it is used in place."""
    try:
        document = json.loads(found.read_text("direct_url.json") or "{}")
        url, editable = str(document.get("url", "")), bool(document.get("dir_info", {}).get("editable", False))
    except (ValueError, AttributeError):
        return "", False
    parts = urlsplit(url)
    if parts.scheme == "file":
        return unquote(parts.path), editable
    # Leave out the user name or token before the host.
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(), editable
