"""What the processes of the model send to each other and store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from heron.planner.physical_plan import StreamManagerLocation
from heron.tmanager.leader.checkpoint_progress import CheckpointReport
from heron.tmanager.leader.process_reports import ProcessReport
from heron.tmanager.leader.task_table import TaskReport

__all__ = [
    "GROUPS",
    "KEYS",
    "NUMBERS",
    "Heartbeat",
    "Hello",
    "Key",
    "Lost",
    "Message",
    "Saved",
    "Segment",
    "Sink",
    "ToLeader",
    "group_of",
]

KEYS = 4  # of each spout component
NUMBERS = 12  # of each key
GROUPS = 4

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Segment:
    """What a task sends to one task: a row, END, or the marker of a checkpoint (`number`)."""

    source: int
    destination: int
    version: int
    kind: str
    number: int = 0
    key: Key = ("", 0)
    count: int = 0


@dataclass(frozen=True, slots=True)
class Saved:
    """The state of a task in the store."""

    component: str
    ended: bool
    values: dict[Key, int]


@dataclass
class Sink:
    """The files of one task, which outlive its process; as `CommitBolt` in ``tests/e2e/topologies/exactly_once.py``."""

    open: list[Segment] = field(default_factory=list)
    pending: dict[int, list[Segment]] = field(default_factory=dict)
    committed: list[tuple[int, Segment]] = field(default_factory=list)

    def pre_save(self, number: int) -> None:
        """The lines since the last checkpoint belong to this one."""
        if self.open:
            self.pending[number], self.open = self.open, []

    def post_save(self, number: int) -> None:
        """Commits the files up to this checkpoint."""
        for each in sorted(each for each in self.pending if each <= number):
            self.committed += [(each, line) for line in self.pending.pop(each)]

    def pre_restore(self, number: int) -> None:
        """Commits what belongs to the checkpoint, and removes what is newer."""
        if number:
            self.post_save(number)
        self.pending, self.open = {}, []


@dataclass(frozen=True, slots=True)
class Hello:
    """A stream manager registers."""

    location: StreamManagerLocation
    losses: int
    by_task: Mapping[int, int]
    reports: tuple[TaskReport, ...]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat of a stream manager."""

    container_id: int
    incarnation: int
    losses: int
    by_task: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Lost:
    """In a link between stream managers: frames are missing here, as the next hello says."""


Message = Segment | TaskReport | CheckpointReport
ToLeader = Hello | Heartbeat | TaskReport | CheckpointReport | ProcessReport


def group_of(key: Key) -> int:
    """The key group of a key."""
    return key[1] % GROUPS
