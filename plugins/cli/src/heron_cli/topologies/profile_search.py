"""Finds the profiles under which a topology runs."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress

from heron.clock import monotonic_s
from heron.errors import HeronError
from heron.spi.driver import DriverRef
from heron_cli.catalog.drivers import Drivers
from heron_cli.catalog.third_party import open_guarded_statemgr
from heron_cli.profiles import load_profile, profile_names
from heron_cli.topologies.environment import ProfileChoice
from heron_cli.topologies.run_nodes import check_name, read_run

__all__ = ["profiles_running"]

_LIMIT_S = 2.0  # for all profiles: the store of one may be away


def profiles_running(topology: str, choice: ProfileChoice) -> tuple[str, ...]:
    """Return the names of the profiles under which a topology of that name exists, sorted.

    It looks into the state managers of all profiles at the same time, for at most 2 s. A profile that cannot be read,
    or whose store does not answer in time, is left out. Settings of `choice` do not apply to other profiles.

    Raises:
        UsageError: when the name is not valid.
        ConfigError: when `choice.config_path` is not a folder.
    """
    check_name(topology)
    names = profile_names(choice.config_path)
    found: set[str] = set()
    threads = [
        threading.Thread(target=_look, args=(ref, topology, found), name=f"look-into-{ref.name}", daemon=True)
        for ref in _state_managers(names, choice)
    ]
    for each in threads:
        each.start()
    deadline_s = monotonic_s() + _LIMIT_S
    for each in threads:
        each.join(max(0.0, deadline_s - monotonic_s()))
    return tuple(sorted(set(found) & set(names)))


def _state_managers(names: Iterable[str], choice: ProfileChoice) -> list[DriverRef]:
    """Return the state managers of the profiles, each once."""
    resolve = Drivers(without=choice.without).resolve
    found: list[DriverRef] = []
    for name in names:
        with suppress(HeronError):
            ref = load_profile(name, resolve, config_path=choice.config_path, needed=("statemgr",)).statemgr
            if ref not in found:
                found.append(ref)
    return found


def _look(ref: DriverRef, topology: str, found: set[str]) -> None:
    """Add the profile under which the topology was submitted, according to this state manager."""
    with suppress(HeronError):
        statemgr = open_guarded_statemgr(ref)
        try:
            if run := read_run(statemgr, topology):
                found.add(run.profile)
        finally:
            statemgr.close()
