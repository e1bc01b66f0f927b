"""Loads drivers and optional parts by ``module:Name``, and compares the versions of contracts.

Role processes use this module, so it imports little. The command finds out which drivers are installed.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TypeVar, cast

from heron.driver_kit.redaction import redact
from heron.errors import HeronError, PluginError
from heron.spi.driver import Driver, DriverRef

__all__ = [
    "checked_driver",
    "contract_version",
    "contract_versions",
    "deprecation",
    "load_object",
    "open_driver",
    "refusal_by_source",
]

D = TypeVar("D", bound=Driver)

_log = logging.getLogger(__name__)

_STATED = r"^class {}\b(?:(?!^\S).)*?^ +spi_version\b[^=\n]*= *(\d+)"
"""How the source of a class states the version of its contract; the class ends with the next line at the margin."""

_CHANGES = "; the page docs/plugins.md says what changed in each version"


def open_driver(ref: DriverRef, base: type[D]) -> D:
    """Import the driver that `ref` names and open it with its options.

    Raises:
        PluginError: when the driver does not import, is not a subclass of `base`, or was written for an unsupported
            version of that contract.
        ConfigError: when the driver refuses its options.
    """
    what = f"{ref.family} driver {ref.name!r}"
    distribution = f"heron-{ref.family}-{ref.name}"
    try:
        found = load_object(ref.entry, what)
    except PluginError as error:
        if refusal := refusal_by_source(ref.entry, base, what, distribution):
            raise PluginError(refusal) from error
        raise
    driver = checked_driver(found, base, what, distribution)
    if reason := deprecation(driver, base, what, distribution):
        _log.warning("%s", reason)
    try:
        opened = driver.open(ref.options)
    except HeronError as error:
        if (text := redact(str(error), ref.secrets)) != str(error):
            raise type(error)(text) from None
        raise
    except (Exception, SystemExit) as error:
        msg = redact(f"{what} ({ref.entry}) does not open: {type(error).__name__}: {error}", ref.secrets)
        raise PluginError(msg) from (None if ref.secrets else error)
    if not isinstance(opened, base):
        msg = f"{what} ({ref.entry}): open returned a {type(opened).__name__}; it must return an object of the driver"
        raise PluginError(msg)
    return opened


def load_object(entry: str, what: str = "object") -> object:
    """Return the object named ``module:Name`` or ``module:Outer.Name``.

    Raises:
        PluginError: when the entry is malformed, its module does not import, or has no such name.
    """
    module_name, colon, path = entry.partition(":")
    if not (colon and module_name and path):
        msg = f"{what}: {entry!r} is not of the form 'module:Name'"
        raise PluginError(msg)
    try:
        found: object = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        msg = f"{what} ({entry}) does not import: {type(error).__name__}: {error}; reinstall it or what it needs"
        raise PluginError(msg) from error
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            msg = f"{what}: module {module_name!r} has no {path!r}"
            raise PluginError(msg) from error
    return found


def checked_driver(found: object, base: type[D], what: str, distribution: str) -> type[D]:
    """Return `found` after checking that it implements the contract `base` in a version of this core.

    Raises:
        PluginError: as for `open_driver`; the message names the distribution to upgrade.
    """
    if not (isinstance(found, type) and issubclass(found, base)):
        msg = f"{what}: {found!r} is not a subclass of {base.__module__}.{base.__qualname__}"
        raise PluginError(msg)
    if refusal := _refusal(getattr(found, "spi_version", None), base, what, distribution):
        raise PluginError(refusal)
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        msg = f"{what} lacks {', '.join(missing)}; upgrade with `pip install -U {distribution}`"
        raise PluginError(msg)
    return found


def refusal_by_source(entry: str, base: type[Driver], what: str, distribution: str) -> str:
    """Return why a driver that does not import is refused: its source states an unsupported version; else "".

    A name that a contract has lost stops the import, so nobody sees the version of the class.
    """
    module_name, _, name = entry.partition(":")
    stated = re.search(_STATED.format(re.escape(name)), _source(module_name), re.MULTILINE | re.DOTALL)
    return _refusal(int(stated[1]), base, what, distribution) if stated else ""


def contract_version(base: type[Driver]) -> int:
    """Return the newest version of a contract in this core: ``SPI_VERSION`` of the module that defines it."""
    return contract_versions(base)[-1]


def contract_versions(base: type[Driver]) -> range:
    """Return the versions of a contract that this core loads: ``OLDEST_SPI_VERSION`` to ``SPI_VERSION``."""
    module = sys.modules[base.__module__].__dict__
    return range(cast("int", module["OLDEST_SPI_VERSION"]), cast("int", module["SPI_VERSION"]) + 1)


def deprecation(driver: type[Driver], base: type[Driver], what: str, distribution: str) -> str:
    """Return why a driver that loads should be upgraded: its version of the contract is an old one; else ""."""
    supported = contract_versions(base)
    if driver.spi_version >= supported[-1]:
        return ""
    return (
        f"{what} is written for version {driver.spi_version} of its contract, which is deprecated; this core supports "
        f"{_spelled(supported)}; upgrade with `pip install -U {distribution}`{_CHANGES}"
    )


def _refusal(stated: object, base: type[Driver], what: str, distribution: str) -> str:
    supported = contract_versions(base)
    if stated in supported:
        return ""
    newer = isinstance(stated, int) and stated > supported[-1]
    changes = _CHANGES if isinstance(stated, int) and not newer else ""
    return (
        f"{what} is written for version {stated} of its contract, this core supports {_spelled(supported)}; "
        f"upgrade with `pip install -U {'heron-core' if newer else distribution}`{changes}"
    )


def _source(module_name: str) -> str:
    """Return the source of a module without importing it or its packages; "" if there is none."""
    places: Sequence[str] | None = None
    spec: ModuleSpec | None = None
    parts = module_name.split(".")
    try:
        for count in range(len(parts)):
            spec = PathFinder.find_spec(".".join(parts[: count + 1]), places)
            places = (spec.submodule_search_locations if spec else None) or []
        return Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
    except (OSError, ValueError):
        return ""


def _spelled(versions: range) -> str:
    return f"version {versions[0]}" if len(versions) == 1 else f"versions {versions[0]} to {versions[-1]}"
