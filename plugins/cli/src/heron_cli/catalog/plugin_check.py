"""The checks of ``heron plugins check``: whether each plugin loads, and whether the servers of a profile answer."""

from __future__ import annotations

import enum
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from heron.driver_kit.redaction import redact
from heron.errors import HeronError
from heron.spi.driver import Driver, DriverRef
from heron.spi.families import FAMILIES
from heron.spi.metricsink import MetricsSink
from heron.spi.scheduler import Scheduler
from heron.spi.statemgr import StateManager
from heron_cli.catalog.drivers import DriverInfo
from heron_cli.catalog.other_plugins import COMPAT_FAMILY, OBSERVER_FAMILY
from heron_cli.catalog.third_party import open_guarded, within
from heron_cli.profiles import Profile
from heron_cli.profiles.overrides import is_switched_off

__all__ = ["PluginCheck", "ServerState", "ask_server", "check_plugins", "refs_of"]

_MARGIN_S = 1.0  # the error of a driver that keeps its limit has more details than that of `within`

_SELF_CHOSEN = {
    OBSERVER_FAMILY: "works; every command and process calls it",
    COMPAT_FAMILY: "works; a program that imports the package uses it",
    "serializer": "works; a topology chooses it",
    "state": "works; a topology chooses it",
    "task": "works; a task uses it when a command asks",
}
"""The families that no profile chooses, and who uses their plugins."""


class ServerState(enum.StrEnum):
    """What is known of the server behind a driver."""

    ANSWERS = "answers"
    NONE = "none"
    """There is no server to ask."""
    AWAY = "away"
    NOT_ASKED = "not asked"
    """The profile does not use the driver, so the place of its server is unknown; or the driver does not load."""


@dataclass(frozen=True, slots=True)
class PluginCheck:
    """The result for one plugin: `detail` is the answer of its server, why it is away, or who uses the plugin."""

    plugin: DriverInfo
    server: ServerState
    detail: str = ""

    @property
    def works(self) -> bool:
        """Whether it loads, and its server answers if it was asked."""
        return not self.plugin.error and self.server is not ServerState.AWAY


def refs_of(profile: Profile, log_dir: str) -> Mapping[tuple[str, str], DriverRef]:
    """Return the drivers that a profile uses, by family and name; sinks write to `log_dir`."""
    return {(ref.family, ref.name): ref for ref in (*profile.singles, *profile.sinks(log_dir))}


def check_plugins(
    plugins: Sequence[DriverInfo], profile: Profile, timeout_s: float, without: Collection[str] = ()
) -> tuple[PluginCheck, ...]:
    """Check the plugins one after the other; each step takes at most about `timeout_s` seconds.

    Observers that `without` names are loaded and not used.
    """
    with tempfile.TemporaryDirectory(prefix="heron-check-") as folder:
        used = refs_of(profile, folder)
        return tuple(_check(each, used.get((each.family, each.name)), timeout_s, without) for each in plugins)


def ask_server(ref: DriverRef, timeout_s: float, others: Sequence[DriverRef] = ()) -> str:
    """Open the driver, ask its server, and close the driver; return the answer, "" without a server.

    A scheduler receives the `others` of its profile, which containers need.

    Raises:
        HeronError: when the driver does not open or close, or its server does not answer within `timeout_s` seconds.
    """
    what = f"{ref.family} driver {ref.name!r}"
    base: type[Driver] = FAMILIES[ref.family]
    limit_s = timeout_s + _MARGIN_S
    driver = within(limit_s, f"{what}: open", lambda: open_guarded(ref, base))
    try:
        if isinstance(driver, Scheduler) and others:
            answer = within(limit_s, f"{what}: check", lambda: driver.check_places(others, timeout_s))
        else:
            answer = within(limit_s, f"{what}: check", lambda: driver.check(timeout_s))
    except BaseException:
        _close(driver, what, limit_s, quiet=True)
        raise
    _close(driver, what, limit_s)
    return answer


def _close(driver: Driver, what: str, limit_s: float, *, quiet: bool = False) -> None:
    """Close the driver; with `quiet`, a failure does not hide the error that is being raised."""
    if not isinstance(driver, StateManager | MetricsSink):
        return
    try:
        within(limit_s, f"{what}: close", driver.close)
    except HeronError:
        if not quiet:
            raise


def _check(plugin: DriverInfo, ref: DriverRef | None, timeout_s: float, without: Collection[str]) -> PluginCheck:
    if plugin.error:
        return PluginCheck(plugin, ServerState.NOT_ASKED)
    if plugin.family == OBSERVER_FAMILY and is_switched_off(OBSERVER_FAMILY, plugin.name, without):
        return PluginCheck(plugin, ServerState.NOT_ASKED, "loads; switched off by --without")
    if plugin.family in _SELF_CHOSEN and ref is None:
        return PluginCheck(plugin, ServerState.NONE, _SELF_CHOSEN[plugin.family])
    if ref is None:
        return PluginCheck(plugin, ServerState.NOT_ASKED)
    try:
        answer = ask_server(ref, timeout_s)
    except HeronError as error:
        return PluginCheck(plugin, ServerState.AWAY, redact(str(error), ref.secrets))
    return PluginCheck(plugin, ServerState.ANSWERS if answer else ServerState.NONE, redact(answer, ref.secrets))
