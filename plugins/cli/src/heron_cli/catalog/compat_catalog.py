"""Which foreign packages are served, so that programs written for them run as they are. For commands only.

Nothing chooses a compat plugin: a program imports the package, and that is all. So it is no driver and has no contract;
its entry point, in the group ``heron.compat``, names a class whose `package` is the package that is served.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import sys
from dataclasses import replace

from heron.driver_kit.loading import load_object
from heron.errors import PluginError
from heron_cli.catalog.distribution import provider_of
from heron_cli.catalog.drivers import IMPORT_LIMIT_S, DriverInfo, info_of
from heron_cli.catalog.time_limit import within

__all__ = ["COMPAT_FAMILY", "compat_catalog"]

COMPAT_FAMILY = "compat"


def compat_catalog() -> tuple[DriverInfo, ...]:
    """Every installed compat plugin by name, with the package that it serves as its capability."""
    installed = sorted(importlib.metadata.entry_points(group="heron.compat"), key=lambda each: (each.name, each.value))
    return tuple(_describe(each) for each in installed)


def _describe(entry_point: importlib.metadata.EntryPoint) -> DriverInfo:
    info = info_of(COMPAT_FAMILY, entry_point, provider_of(entry_point))
    what = f"compat plugin {info.name!r} of {info.distribution} ({info.entry})"

    def served() -> str:
        package = getattr(load_object(info.entry, what), "package", None)
        if not isinstance(package, str):
            msg = f"{what}: its class names no package; upgrade with `pip install -U {info.distribution}`"
            raise PluginError(msg)
        return package

    try:
        with contextlib.redirect_stdout(sys.stderr):
            return replace(info, capabilities=(within(IMPORT_LIMIT_S, f"{what}: its import", served),))
    except PluginError as error:
        return replace(info, error=str(error))
