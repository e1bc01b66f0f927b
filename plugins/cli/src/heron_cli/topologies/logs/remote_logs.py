"""Logs that a scheduler keeps with its containers, on whatever machine they run.

A container prints the engine's JSON lines as they are, and each other line as ``NAME | TEXT``, with the name of its
log. Lines are taken from the end of what the scheduler has; older ones of a busy process may be missing.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

import msgspec

from heron.errors import SchedulerError, UsageError
from heron.spi.scheduler import Scheduler, SchedulerState
from heron.spi.typed_values import decode_json
from heron_cli.topologies.logs.log_files import LogLine, log_line, who_writes

__all__ = ["RemoteLogs"]

_FETCHED = 5000  # lines of a container
_PRINTED = re.compile(r"(?P<name>[\w.-]+-\d+) \| (?P<text>.*)", re.DOTALL)


class _Bound(msgspec.Struct):
    process: str
    container: int
    component: str = ""
    task: int = 0


class RemoteLogs:
    """The logs of one topology, or of one of its tasks."""

    def __init__(self, scheduler: Scheduler, topology: str, task_id: int | None = None) -> None:
        self._scheduler = scheduler
        self._topology = topology
        self._task_id = task_id
        self._seen: dict[int, Sequence[str]] = {}
        self._known: tuple[int, ...] = ()
        """The containers of the job, also when it has gone: some schedulers still have what these have printed."""
        self._silent: dict[int, str] = {}
        """Why containers have no lines now, of which the lines tell once."""

    @classmethod
    def available(cls, scheduler: Scheduler, topology: str) -> bool:
        """Return whether the scheduler keeps the logs of this topology."""
        return "output" in scheduler.capabilities and scheduler.status(topology).state is not SchedulerState.ABSENT

    def last(self, count: int, search: str = "") -> tuple[LogLine, ...]:
        """Return the last lines of each log that contain a text ("": any), as `LogFolder.last` orders them.

        Raises:
            UsageError: when the task has no logs there.
        """
        by_log: dict[str, deque[LogLine]] = defaultdict(lambda: deque(maxlen=count))
        found = set()
        for line in self.new():
            found.add(line.who)
            if search.casefold() in line.text.casefold() or search.casefold() in line.error.casefold():
                by_log[f"{line.who} {bool(line.at)}"].append(line)
        if self._task_id is not None and not found:
            msg = (
                f"task {self._task_id} has no logs in the containers of topology {self._topology!r}; "
                f"`heron status {self._topology}` lists its tasks"
            )
            raise UsageError(msg)
        lines = [line for each in by_log.values() for line in each]
        engine = sorted((line for line in lines if line.at), key=lambda line: line.at)
        return (*engine, *sorted((line for line in lines if not line.at), key=lambda line: line.who))

    def new(self) -> Iterator[LogLine]:
        """Return the lines since the last call, of one container after the other."""
        job = self._scheduler.status(self._topology)
        gone = job.state is SchedulerState.ABSENT
        if not gone:
            self._known = tuple(each.container_id for each in job.containers)
        for number in self._known:
            yield from filter(self._is_wanted, (_parsed(line, number) for line in self._fresh(number, gone=gone)))

    def _fresh(self, container_id: int, *, gone: bool) -> list[str]:
        """Return the new lines of a container, or once why it has none: it has not started, or its machine is away."""
        try:
            lines = list(self._scheduler.output(self._topology, container_id, _FETCHED))
        except SchedulerError as error:
            if gone:
                return []
            told, self._silent[container_id] = self._silent.get(container_id), str(error)
            return [] if told == str(error) else [f"its lines cannot be read now: {error}"]
        self._silent.pop(container_id, None)
        fresh = _after(self._seen.get(container_id, ()), lines)
        self._seen[container_id] = lines[-_FETCHED:]
        return fresh

    def _is_wanted(self, line: LogLine) -> bool:
        return self._task_id is None or line.who.endswith(f"/{self._task_id}")


def _after(seen: Sequence[str], lines: list[str]) -> list[str]:
    """Return the lines behind the last one that was seen; all when it is not among them."""
    if not seen:
        return lines
    for end in range(len(lines), 0, -1):
        if lines[end - 1] == seen[-1] and lines[max(0, end - 3) : end] == list(seen[-3:])[-min(3, end) :]:
            return lines[end:]
    return lines


def _parsed(line: str, container_id: int) -> LogLine:
    if printed := _PRINTED.fullmatch(line):
        return LogLine(who_writes(printed["name"])[0], printed["text"])
    try:
        bound = decode_json(line.encode("utf-8", "replace"), _Bound)
    except msgspec.MsgspecError:
        return LogLine(f"container-{container_id}", line)
    who = f"{bound.component}/{bound.task}" if bound.task else f"{bound.process}-{bound.container}"
    return log_line(who, line, engine=True)
