"""What ``heron plugins check`` finds out: what loads, and of what a profile uses, whose server answers."""

from __future__ import annotations

import enum
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heron.driver_kit.redaction import redact
from heron.errors import HeronError
from heron.spi.driver import DriverRef
from heron_cli.catalog.drivers import DriverInfo
from heron_cli.catalog.server_check import ask_server
from heron_cli.profiles import Profile

__all__ = ["PluginCheck", "ServerState", "check_plugins", "refs_of"]


class ServerState(enum.StrEnum):
    """What is known of the server behind a driver."""

    ANSWERS = "answers"
    NONE = "none"
    """There is nothing to ask."""
    AWAY = "away"
    NOT_ASKED = "not asked"
    """The profile does not use the driver, so that nobody knows where its server is; or it does not load."""


@dataclass(frozen=True, slots=True)
class PluginCheck:
    """One plugin: `detail` is what its server said, or why it is away; `works` is whether nothing is wrong."""

    plugin: DriverInfo
    server: ServerState
    detail: str = ""

    @property
    def works(self) -> bool:
        """Whether it loads, and its server answers if it was asked."""
        return not self.plugin.error and self.server is not ServerState.AWAY


def refs_of(profile: Profile, log_dir: str) -> Mapping[tuple[str, str], DriverRef]:
    """The drivers that a profile uses with their options, by family and name; sinks write to `log_dir`."""
    chosen = (profile.scheduler, profile.statemgr, profile.uploader, profile.packing, *profile.sinks(log_dir))
    return {(ref.family, ref.name): ref for ref in chosen}


def check_plugins(plugins: Sequence[DriverInfo], profile: Profile, timeout_s: float) -> tuple[PluginCheck, ...]:
    """Every plugin in turn; each of its steps takes at most `timeout_s` seconds and a little."""
    with tempfile.TemporaryDirectory(prefix="heron-check-") as folder:
        used = refs_of(profile, folder)
        return tuple(_check(each, used.get((each.family, each.name)), timeout_s) for each in plugins)


def _check(plugin: DriverInfo, ref: DriverRef | None, timeout_s: float) -> PluginCheck:
    if plugin.error or ref is None:
        return PluginCheck(plugin, ServerState.NOT_ASKED)
    try:
        answer = ask_server(ref, timeout_s)
    except HeronError as error:
        return PluginCheck(plugin, ServerState.AWAY, redact(str(error), ref.secrets))
    return PluginCheck(plugin, ServerState.ANSWERS if answer else ServerState.NONE, redact(answer, ref.secrets))
