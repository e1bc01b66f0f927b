"""Numbers of partitions, counted by key, and written to files that are committed with each checkpoint.

The spout ends when there is a file ``stop`` among the results. Each committed line has a partition, a number, and the
count of the partition's numbers: whatever happens, line n of partition P is ``P n n+1``. The components say at which
instant of a checkpoint they are, see ``held_instants.py``.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from recording import arguments

from heron.api import (
    Bolt,
    CounterState,
    Grouping,
    ITwoPhaseStatefulComponent,
    Spout,
    State,
    StatefulComponent,
    TopologyBuilder,
    TopologyContext,
    Tuple,
    ValueState,
    api_constants,
)

PARTITIONS = 40
TASKS = 6  # at the start; ids of later tasks are greater


def note_start(context: TopologyContext) -> None:
    """Says that a task starts that an update has added."""
    if context.get_task_id() > TASKS:
        sys.audit("heron.test.instant", "initialize")


class PartitionSpout(Spout):
    """Emits the numbers of the partitions that its task owns; their positions are keyed state."""

    outputs = ("partition", "number")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Continues at the positions of its partitions."""
        note_start(context)
        self.stop = Path(config["out"], "stop")
        self.positions = context.keyed_state("position", CounterState)
        self.partitions = [each for each in range(PARTITIONS) if context.owns(each)]
        self.calls = 0

    def next_tuple(self) -> None:
        """Emits the next number of each partition; looks for the file now and then."""
        self.calls += 1
        if self.calls % 5 == 0 and self.stop.exists():
            self.end()
            return
        # Commands of a test get processor time. time.sleep fails where a test shifts the clock with libfaketime.
        select.select([], [], [], 0.1)
        for partition in self.partitions:
            self.emit([partition, self.positions.add(partition) - 1])


@dataclass(frozen=True)
class Mark:
    """A number of a partition."""

    number: int


class CountBolt(Bolt):
    """Counts the numbers of each partition in keyed state."""

    outputs = ("partition", "number", "count")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Takes its state."""
        note_start(context)
        self.counts = context.keyed_state("count", CounterState)
        self.marks = context.keyed_state("mark", ValueState)
        self.unpicklable = Path(config["out"], "unpicklable")

    def process(self, tup: Tuple) -> None:
        """Counts a number; keeps a mark now and then, which cannot be saved while there is a file ``unpicklable``."""
        partition, number = tup.values
        if number % 15 == 0:
            self.marks.put(partition, Mark(number) if not self.unpicklable.exists() else lambda: number)
        self.emit([partition, number, self.counts.add(partition)])


class OperatorCountBolt(Bolt, StatefulComponent):
    """Counts the same in the state of its task."""

    outputs = ("partition", "number", "count")

    def init_state(self, state: State) -> None:
        """Takes the counts."""
        self.state = state

    def process(self, tup: Tuple) -> None:
        """Counts a number."""
        partition, number = tup.values
        count = (self.state.get(partition) or 0) + 1
        self.state.put(partition, count)
        self.emit([partition, number, count])


class CommitBolt(Bolt, ITwoPhaseStatefulComponent):
    """Writes lines to a file that is part of the output when its checkpoint is complete."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins a file at the first line."""
        self.folder, self.task = Path(config["out"]), context.get_task_id()
        self.open = self.folder / f"{self.task}-open"
        self.file: IO[str] | None = None

    def process(self, tup: Tuple) -> None:
        """Writes a line."""
        if self.file is None:
            self.file = self.open.open("w", encoding="utf-8")
        self.file.write(" ".join(map(str, tup.values)) + "\n")

    def pre_save(self, checkpoint_id: str) -> None:
        """The lines since the last checkpoint belong to this one."""
        sys.audit("heron.test.instant", "pre_save")
        if self.file is not None:
            self.file.close()
            self.file = None
            self.open.rename(self.folder / f"{self.task}-pending-{int(checkpoint_id):06d}")

    def post_save(self, checkpoint_id: str) -> None:
        """Commits the files of checkpoints up to this one."""
        sys.audit("heron.test.instant", "post_save")
        for path in self._pending():
            if int(path.name.rpartition("-")[2]) <= int(checkpoint_id):
                path.rename(path.with_name(path.name.replace("pending", "committed")))

    def pre_restore(self, checkpoint_id: str) -> None:
        """Commits what belongs to the checkpoint, and removes what is newer."""
        sys.audit("heron.test.instant", "pre_restore")
        if checkpoint_id:
            self.post_save(checkpoint_id)
        for path in (*self._pending(), self.open):
            path.unlink(missing_ok=True)

    def _pending(self) -> list[Path]:
        return sorted(self.folder.glob(f"{self.task}-pending-*"))


if __name__ == "__main__":
    options = arguments(interval=1.0, operator=0, backend="memory")
    builder = TopologyBuilder("exactly_once")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 2,
            api_constants.TOPOLOGY_RELIABILITY_MODE: api_constants.TopologyReliabilityMode.EFFECTIVELY_ONCE,
            api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: options.interval,
            api_constants.TOPOLOGY_STATE_BACKEND: options.backend,
            "out": options.out,
        }
    )
    counting = OperatorCountBolt if options.operator else CountBolt
    read = builder.add_spout("read", PartitionSpout, par=2)
    count = builder.add_bolt("count", counting, par=2, inputs={read: Grouping.fields("partition")})
    builder.add_bolt("commit", CommitBolt, par=2, inputs={count: Grouping.fields("partition")})
    builder.build_and_submit()
