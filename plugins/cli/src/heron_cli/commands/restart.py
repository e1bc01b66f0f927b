"""``heron restart``: containers are ended and started anew, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable

import click

from heron.clock import monotonic_s
from heron.errors import SchedulerError, TopologyFailedError, UnreachableError, UsageError, known
from heron.ipc.keys import Speaker
from heron.ipc.status import TopologyStatus
from heron.spi.scheduler import ContainerStatus, SchedulerState
from heron_cli.client.container_return import containers_of, given_up, missing, refused
from heron_cli.client.watcher import ENDED
from heron_cli.commands.completion import complete_topology
from heron_cli.commands.remote_options import Remote, RemoteOptions, open_remote, remote_options
from heron_cli.view.json_text import print_json

__all__ = ["restart", "restart_containers"]

_EXIT_INTERRUPTED = 130

_LOOK_S = 0.1
_GIVEN_UP_S = 1.0  # what was given up before the restart is still told until the container has begun anew


@click.command()
@click.argument("name", shell_complete=complete_topology)
@click.argument("container", type=int, required=False)
@remote_options(timeout_s=60.0, timeout_help="How long a container may take to be back.")
@click.pass_context
def restart(context: click.Context, name: str, container: int | None, options: RemoteOptions) -> None:
    """Restarts CONTAINER of the topology NAME, or without it all of them, and waits until they run again.

    Container 0 has the topology manager. At least once, what was under way is replayed; at most once it is lost.
    """
    try:
        with open_remote(name, options) as remote:
            restarted = restart_containers(remote, container, _say_nothing if options.as_json else _say)
    except KeyboardInterrupt:
        click.echo(f"heron: interrupted; what was ended is still being started, see `heron status {name}`", err=True)
        context.exit(_EXIT_INTERRUPTED)
    if options.as_json:
        print_json({"topology": name, "restarted": restarted})


def restart_containers(remote: Remote, container: int | None, say: Callable[[str], None]) -> dict[str, float]:
    """Restarts one container or all; returns how long each took to be back (s).

    Raises:
        UsageError: when there is no such container, or the scheduler cannot restart one; nothing was changed.
        SchedulerError: when a container cannot be started.
        TopologyFailedError: when something of it was given up.
        UnreachableError: when it is not back in time; it is still being started.
    """
    status = remote.topology.status(Speaker.CONTROL)  # who may not change a topology may not restart it
    containers = containers_of(status)
    if container is not None and container not in containers:
        ids = known(map(str, containers))
        msg = f"topology {remote.topology.name!r} has no container {container}; it has {ids}"
        raise UsageError(msg)
    if "restart" not in remote.scheduler.capabilities:
        msg = f"the scheduler of profile {remote.profile!r} cannot restart containers; kill the topology and submit it"
        raise UsageError(msg)
    took_s: dict[str, float] = {}
    for each in containers if container is None else (container,):
        took_s[str(each)] = round(_restart_one(remote, each), 3)
        say(f"container {each} of {remote.topology.name} is back after {took_s[str(each)]:.1f} s")
    return took_s


def _restart_one(remote: Remote, container_id: int) -> float:
    topology = remote.topology
    before = topology.status()
    began_s = monotonic_s()
    job = remote.scheduler.status(topology.name).of(topology.run.topology_id)
    if job.state is not SchedulerState.RUNNING:
        msg = (
            f"the scheduler of profile {remote.profile!r} does not run topology {topology.name!r}; "
            "give the profile that submitted it"
        )
        raise UsageError(msg)
    attempts = next((each.attempts for each in job.containers if each.container_id == container_id), 0)
    remote.scheduler.restart(topology.name, container_id)
    pause = threading.Event()
    while True:
        now = topology.status()
        _check(now, container_id, given_up_too=monotonic_s() - began_s > _GIVEN_UP_S)
        lacking = missing(before, now, container_id)
        took_s = monotonic_s() - began_s
        if not lacking:
            return took_s
        error, in_vain = refused(_container(remote, container_id), attempts)
        if in_vain:
            msg = (
                f"container {container_id} of topology {topology.name!r} does not begin, {in_vain} times: {error}; "
                f"it is still tried, see `heron status {topology.name}`"
            )
            raise TopologyFailedError(msg)
        if took_s >= topology.timeout_s:
            msg = (
                f"container {container_id} of topology {topology.name!r} is not back after {topology.timeout_s:g} s: "
                f"{error or lacking}; see `heron status {topology.name}` and `heron logs {topology.name}`"
            )
            raise UnreachableError(msg)
        pause.wait(_LOOK_S)


def _container(remote: Remote, container_id: int) -> ContainerStatus | None:
    """The scheduler's view of it; None while nobody can tell."""
    try:
        job = remote.scheduler.status(remote.topology.name).of(remote.topology.run.topology_id)
    except SchedulerError:
        return None
    return next((each for each in job.containers if each.container_id == container_id), None)


def _check(status: TopologyStatus, container_id: int, *, given_up_too: bool) -> None:
    if status.state in ENDED:
        msg = f"topology {status.topology!r} is {status.state} meanwhile{f': {status.error}' if status.error else ''}"
        raise TopologyFailedError(msg)
    if given_up_too and (why := given_up(status, container_id)):
        msg = f"container {container_id} of topology {status.topology!r} is not back: {why}"
        raise TopologyFailedError(msg)


def _say(text: str) -> None:
    click.echo(text)


def _say_nothing(_text: str) -> None:
    """With --json only JSON is printed."""
