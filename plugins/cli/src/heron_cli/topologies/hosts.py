"""The hosts of a state manager: what topologies report of them, which ones are blocked, and who avoids those.

`HostList` is for commands and programs; it opens only the state manager of a profile. The functions give a scheduler
the names of the hosts to avoid; a scheduler without the flag ``avoid`` costs nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from heron.clock import wall_s
from heron.errors import HeronError, HostsNotAvoidedError, SchedulerError, UsageError, known, nearest
from heron.spi.scheduler import Scheduler
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.host_blocks import HostBlock, HostBlocks, change_host_blocks, read_host_blocks
from heron.state_nodes.host_report import HostReport, decode_host_report
from heron_cli.catalog.third_party import open_guarded_statemgr
from heron_cli.topologies.environment import ProfileChoice, close_statemgr, find_profile

__all__ = ["HostList", "avoid_blocked_hosts", "leave_host"]

_MOST_CHARACTERS = 255  # of a name in DNS

_log = logging.getLogger(__name__)


class HostList:
    """The hosts of one state manager; a context manager. Its methods raise StateError when the state manager fails."""

    def __init__(self, statemgr: StateManager) -> None:
        """Programs call `open`."""
        self._statemgr = statemgr

    @classmethod
    def open(cls, choice: ProfileChoice) -> Self:
        """Open the state manager of a profile.

        Raises:
            ConfigError: when the profile or a setting is unknown or wrong.
            PluginError: when the driver of the state manager is missing or does not work.
        """
        return cls(open_guarded_statemgr(find_profile(choice, ("statemgr",)).statemgr))

    def close(self) -> None:
        """Close the state manager; idempotent."""
        close_statemgr(self._statemgr)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def reports(self) -> tuple[HostReport, ...]:
        """Return the reports of all topologies that are new enough, by the name of the topology.

        A report that cannot be read is left out; the log names it.
        """
        found = []
        for name in self._statemgr.list(NodeKind.HOSTS):
            node = self._statemgr.get(NodeKind.HOSTS, name)
            try:
                report = decode_host_report(node.value, name) if node else None
            except HeronError as error:
                _log.warning("%s", error)
                continue
            if report is not None and report.counts(wall_s()):
                found.append(report)
        return tuple(found)

    def blocks(self) -> HostBlocks:
        """Return the list as it is now."""
        return read_host_blocks(self._statemgr).at(wall_s())

    def block(self, host: str, for_s: float, *, by: str, reason: str = "") -> HostBlock:
        """Block a host for some seconds, in place of an earlier block; return the block.

        Raises:
            UsageError: when the name or the time cannot be used; nothing was changed.
        """
        if not 0 < len(host) <= _MOST_CHARACTERS or any(each.isspace() or each == "," for each in host):
            msg = f"{host[:300]!r} is not the name of a host; `heron hosts list` shows the names that topologies report"
            raise UsageError(msg)
        if for_s <= 0:
            msg = f"a block of {for_s:g} s has ended when it begins; give a time above 0 s"
            raise UsageError(msg)
        now_s = wall_s()
        block = HostBlock(host, now_s, now_s + for_s, by, reason)
        self.change(lambda blocks: blocks.with_block(block))
        return block

    def unblock(self, host: str, for_s: float) -> None:
        """End the block of a host, which the judge leaves alone for some seconds.

        Raises:
            UsageError: when the host is not blocked; nothing was changed.
        """

        def without(blocks: HostBlocks) -> HostBlocks:
            names = blocks.hosts(wall_s())
            if host not in names:
                msg = f"host {host!r} is not blocked{nearest(host, names)}; blocked: {known(names)}"
                raise UsageError(msg)
            return blocks.without(host, wall_s() + for_s)

        self.change(without)

    def change(self, change: Callable[[HostBlocks], HostBlocks]) -> tuple[HostBlocks, HostBlocks]:
        """Replace the list by `change` of it, which may be called again; return the list before and after.

        A judge calls it.
        """
        return change_host_blocks(self._statemgr, wall_s(), change)


def avoid_blocked_hosts(scheduler: Scheduler, statemgr: StateManager, *others: str) -> None:
    """Let a scheduler avoid the blocked hosts, and `others`, in the next requests.

    A list that cannot be read, and a scheduler that cannot avoid hosts, are logged: the request is more important.
    """
    if "avoid" not in scheduler.capabilities:
        return
    try:
        blocked = read_host_blocks(statemgr).hosts(wall_s())
    except HeronError as error:
        _log.warning("blocked hosts are not avoided: %s", error)
        blocked = ()
    try:
        scheduler.avoid_hosts(sorted({*blocked, *others}))
    except HostsNotAvoidedError as error:
        if others:
            raise
        _log.warning("blocked hosts are not avoided: %s", error)


def leave_host(scheduler: Scheduler, statemgr: StateManager, topology: str, container_id: int) -> None:
    """Let a scheduler avoid the blocked hosts, and the present host of a container, in the next requests.

    Raises:
        HostsNotAvoidedError: when it cannot avoid hosts, or does not know the host.
    """
    host = ""
    with suppress(SchedulerError):
        containers = scheduler.status(topology).containers
        host = next((each.host for each in containers if each.container_id == container_id), "")
    if not host or "avoid" not in scheduler.capabilities:
        why = "its scheduler cannot avoid hosts" if "avoid" not in scheduler.capabilities else "its host is not known"
        msg = f"container {container_id} of topology {topology!r} cannot be started elsewhere: {why}"
        raise HostsNotAvoidedError(msg)
    avoid_blocked_hosts(scheduler, statemgr, host)
