"""The process: the watches of all clusters and the server of HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from heron.clock import SystemClock, monotonic_s
from heron.driver_kit.redaction import redact_for_command
from heron.errors import HeronError, UsageError
from heron_cli.client import Client, connect, metrics_sinks
from heron_driver_kit.native_memory import return_large_blocks
from heron_service_tracker.calls.actions import Actions
from heron_service_tracker.calls.audit_file import AuditFile
from heron_service_tracker.calls.explain_command import ExplainCommand
from heron_service_tracker.calls.questions import Questions
from heron_service_tracker.history.prometheus_history import PrometheusHistory
from heron_service_tracker.history.recorder import Recorder
from heron_service_tracker.http.access import Access
from heron_service_tracker.http.address import Address
from heron_service_tracker.http.application import Pages, application
from heron_service_tracker.http.bounded_protocol import MOST_HEAD_BYTES, BoundedProtocol
from heron_service_tracker.http.repeated_records import once_per_minute
from heron_service_tracker.watches.cluster_watch import ClusterWatch
from heron_service_tracker.watches.observations import METRICS_S, Observations

__all__ = ["TrackerOptions", "serve", "watching"]

_log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_BACKLOG = 256
_GAP_PERIODS = 3.0  # two totals further apart make no rate: what lies between is not known
_LIST_PERIODS = 2.0  # a list reads many nodes of each topology, and a new topology takes longer to start
_NEW_OBJECTS = 5_000  # metrics have no cycles, and looking for some costs time; the pause is a millisecond
_SWITCH_S = 0.0002  # a request waits for each thread that is busy, at each send: watches read thousands of metrics
_ALONE_SWITCH_S = 0.005  # Python's own; while nobody waits, switching between watches is only work
_TICK_S = 1.0  # the date in the header of answers has seconds
_LARGE_BYTES = 1 << 20  # more than a live value of a thousand tasks, which is copied for each page
_UNREAD_S = 30.0  # a client that takes nothing of an answer for this long is gone
_MOST_CONNECTIONS = 750  # a browser opens six, and a process has a thousand file descriptors
_JOIN_S = 5.0  # threads wait for what is away at most a little longer, and none of them keeps the process alive
_STOP_S = 5  # an answer takes milliseconds; live streams end by an event


@dataclass(frozen=True, slots=True)
class TrackerOptions:
    """The options of a tracker: profiles, where they are, how often topologies are asked, who may ask.

    `overrides` and `without` are those of `heron_cli.client.connect`, for every profile. `history` is the folder of the
    history, None without one, and `history_bytes` the bound of its file. With `logs`, the logs of tasks are shown. With
    `tuples`, tuples of topologies that allow it are shown. With `audit`, the file of the audit, topologies can be
    changed. With `of_run`, the server is that of `heron run --ui`, and ends with the run.
    """

    profiles: tuple[str, ...]
    access: Access
    config_path: Path | None = None
    period_s: float = 1.0
    history: Path | None = None
    history_bytes: int = 512 * 1024 * 1024
    overrides: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    logs: bool = False
    tuples: bool = False
    audit: Path | None = None
    of_run: bool = False


@contextlib.contextmanager
def watching(options: TrackerOptions) -> Iterator[tuple[Observations, Recorder | None]]:
    """Watch the clusters, and record what is seen, until the block ends."""
    observations, recorder = Observations(options.profiles, SystemClock()), None
    if options.history is not None:
        gap_s = _GAP_PERIODS * max(METRICS_S, options.period_s)
        recorder = Recorder(options.history, options.history_bytes, observations.clock, gap_s=gap_s)
        recorder.prometheus = {name: found for name in options.profiles if (found := _prometheus(options, name))}
        observations.on_status = recorder.take
        recorder.start()
    watches = [
        ClusterWatch(
            profile,
            functools.partial(_open, options, profile),
            observations,
            list_period_s=_LIST_PERIODS * options.period_s,
            period_s=options.period_s,
        )
        for profile in options.profiles
    ]
    for each in watches:
        each.start()
    try:
        yield observations, recorder
    finally:
        for each in watches:
            each.stop()
        until_s = monotonic_s() + _JOIN_S
        for each in watches:
            each.join(until_s)
        if recorder is not None:
            recorder.stop()


def serve(options: TrackerOptions, on_ready: Callable[[Address], None], pages: Pages | None = None) -> None:
    """Serve until SIGINT or SIGTERM; `on_ready` gets the address, with the port that was free.

    `pages` are served beside the paths of the tracker.

    Raises:
        UsageError: when the address is in use or does not belong to this machine.
    """
    gc.set_threshold(_NEW_OBJECTS)
    gc.freeze()  # modules stay, and looking through them takes a tenth of a second
    return_large_blocks(_LARGE_BYTES)
    with _listening(options.access.address) as listener, watching(options) as (observations, recorder):
        on_ready(Address(options.access.address.host, listener.getsockname()[1]))
        asyncio.run(_run(options, (observations, recorder), pages or Pages(), listener))


async def _run(
    options: TrackerOptions, watched: tuple[Observations, Recorder | None], pages: Pages, listener: socket.socket
) -> None:
    ended = asyncio.Event()
    observations, recorder = watched
    opened = functools.partial(_open, options)
    explain = ExplainCommand(functools.partial(_command_options, options))
    questions = Questions(opened, logs_allowed=options.logs, tuples_allowed=options.tuples, explain=explain)
    actions = _actions(options, observations)
    app = application(observations, options.access, ended, recorder, questions, pages, actions)
    await _Server(_config(app), ended, functools.partial(_adapt, observations)).serve(sockets=[listener])


def _adapt(observations: Observations) -> None:
    """Let threads interrupt each other sooner while somebody waits for answers."""
    sys.setswitchinterval(_SWITCH_S if observations.anybody_looks() else _ALONE_SWITCH_S)


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,  # a query may hold what a person pasted
        server_header=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        timeout_graceful_shutdown=_STOP_S,
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        http=BoundedProtocol,
        limit_concurrency=_MOST_CONNECTIONS,
    )


class _Server(uvicorn.Server):
    """Ends the live streams before it waits for connections, and sleeps while nothing happens."""

    def __init__(self, config: uvicorn.Config, ended: asyncio.Event, on_second: Callable[[], None]) -> None:
        super().__init__(config)
        self._ended = ended
        self._on_second = on_second
        self._exit_requested = asyncio.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal. Clients cause warnings of uvicorn and asyncio, so each kind is logged once a minute."""
        with once_per_minute(("uvicorn.error", "asyncio"), SystemClock()):
            await super().serve(sockets)

    async def main_loop(self) -> None:
        """Wait for the signal to end, and keep the date; uvicorn's own looks ten times a second for both."""
        while not await self.on_tick(0):
            self._on_second()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._exit_requested.wait(), _TICK_S)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End soon; called by the event loop."""
        super().handle_exit(sig, frame)
        self._exit_requested.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on SIGINT and SIGTERM. uvicorn's own way raises the signal again, before the watches have ended."""
        loop = asyncio.get_running_loop()
        for each in _SIGNALS:
            loop.add_signal_handler(each, self.handle_exit, each, None)
        try:
            yield
        finally:
            for each in _SIGNALS:
                loop.remove_signal_handler(each)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop; uvicorn calls it."""
        self._ended.set()
        await super().shutdown(sockets)


@contextlib.contextmanager
def _listening(address: Address) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listener = socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        msg = f"cannot listen at {address.host}:{address.port}: {error.strerror or error}; give another `--address`"
        raise UsageError(msg) from error
    # Connections inherit both. asyncio sets the first only where the socket was made with a protocol; without it, the
    # second answer of a connection waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if sys.platform == "linux":
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * _UNREAD_S))
    with listener:
        yield listener


def _actions(options: TrackerOptions, observations: Observations) -> Actions | None:
    if options.audit is None:
        return None
    changing = functools.partial(_open, options, read_only=False)
    return Actions(changing, AuditFile(options.audit), observations.clock)


def _prometheus(options: TrackerOptions, profile: str) -> PrometheusHistory | None:
    """The Prometheus that the profile names; None without one, and where it has a fault, which a watch shows."""
    try:
        sinks = metrics_sinks(
            profile, config_path=options.config_path, overrides=options.overrides, without=options.without
        )
    except HeronError as error:
        _log.info("the metrics sinks of profile %s: %s", profile, redact_for_command(str(error)))
        return None
    servers = [server for each in sinks if each.name == "prometheus" and (server := each.options.get("server"))]
    return PrometheusHistory(str(servers[0])) if servers else None


def _command_options(options: TrackerOptions, profile: str) -> list[str]:
    """The options with which a command sees a profile as this tracker sees it."""
    words = ["--profile", profile]
    if options.config_path is not None:
        words += ["--config-path", str(options.config_path)]
    for key, value in options.overrides.items():
        words += ["--set", f"{key}={value}"]
    for each in options.without:
        words += ["--without", each]
    return words


def _open(options: TrackerOptions, profile: str, *, read_only: bool = True) -> Client:
    return connect(
        profile,
        config_path=options.config_path,
        overrides=options.overrides,
        without=options.without,
        read_only=read_only,
    )
