"""Which observers are installed, and whether they work. For commands only."""

from __future__ import annotations

import contextlib
import importlib.metadata
import sys
from dataclasses import replace

from heron.driver_kit.loading import load_object
from heron.errors import HeronError
from heron.kernel.observers import GROUP, Observers
from heron_cli.catalog.distribution import provider_of
from heron_cli.catalog.drivers import IMPORT_LIMIT_S, DriverInfo, info_of
from heron_cli.catalog.time_limit import within

__all__ = ["OBSERVER_FAMILY", "observer_catalog"]

OBSERVER_FAMILY = "hooks"


def observer_catalog() -> tuple[DriverInfo, ...]:
    """Every installed observer by name, with the hooks that it follows as its capabilities."""
    installed = sorted(importlib.metadata.entry_points(group=GROUP), key=lambda each: (each.name, each.value))
    return tuple(_describe(each) for each in installed)


def _describe(entry_point: importlib.metadata.EntryPoint) -> DriverInfo:
    info = info_of(OBSERVER_FAMILY, entry_point, provider_of(entry_point))

    def followed() -> tuple[str, ...]:
        observers = Observers()
        observers.add(info.entry, load_object(info.entry, "observer"))
        return observers.followed()

    what = f"observer {info.name!r} of {info.distribution} ({info.entry}): its load"
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return replace(info, capabilities=within(IMPORT_LIMIT_S, what, followed))
    except HeronError as error:
        return replace(info, error=str(error))
