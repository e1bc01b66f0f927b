"""The spouts of random topologies: they make the calls of their program, and replay what fails."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heron.api import Spout, Stream, TopologyContext
from heron_testing.random_topologies.lineage import FIELDS, Root, roots_of
from heron_testing.random_topologies.program import Emit
from heron_testing.random_topologies.task_memory import Remembering, StatefulTask, program_of
from heron_testing.random_topologies.values import bad_value, hash_of, key_of, value_of

__all__ = ["GO", "OUTPUTS", "OVER", "ColumnSpout", "ProgramSpout", "StatefulColumnSpout", "StatefulSpout"]

OUTPUTS = (*FIELDS, Stream(fields=list(FIELDS), name="other"))
"""The streams of every component."""

GO = "go"
"""The file in the folder of results that ends the repetition of calls."""

OVER = "over"
"""The suffix of the file that says that a spout task has made its last call."""

_PAUSE_S = 0.003  # between two calls that are repeated: commands need a processor too


class RaisedByProgram(Exception):  # not an error of this module
    """The failure of user code that a program asks for."""


class ProgramSpout(Remembering, Spout):
    """Makes the calls of its program."""

    outputs = OUTPUTS

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin with the first call, or where the checkpoint was."""
        self.program, self.context = program_of(config), context
        self.own = next(each for each in self.program.spouts if each.name == context.get_component_id())
        self.task = self.recall(config, context)
        self.go = Path(self.out, GO) if self.out and self.program.updates else None
        self.open: dict[str, Root] = {}
        self.queue: deque[Root] = deque()
        self.ended = False
        if self.own.end == "initialize":
            self.end_now()

    def next_tuple(self) -> None:
        """Replay a root, make the next call, or end."""
        if self.queue:
            self.send(self.queue.popleft())
        elif self.ended:
            given_up = self.own.replay == "never" and self.task.failed  # the engine asks once for replays
            self.task.surplus += self.own.end != "thread" and not given_up
        elif self.is_over():
            self.come_to_the_end()
        else:
            self.make_call()

    def make_call(self) -> None:
        """Make the next call."""
        number = self.task.calls
        self.task.calls += 1
        call = self.own.calls[number % len(self.own.calls)]
        is_last = self.is_over()
        if is_last and self.own.end == "before":
            self.end_now()
        roots = list(roots_of(self.own, self.task.index, number))
        for root in roots:
            self.pause(call.lasts_s / len(roots))
            self.send(root)
        if is_last and self.own.end == "after":
            self.end_now()
        elif is_last and self.own.end == "thread":
            self.context.threadsafe_collector().end()
            self.ended = True
        self.pause(_PAUSE_S if roots else max(_PAUSE_S, call.lasts_s))
        if call.raises:
            raise RaisedByProgram(f"call {number}")  # noqa: EM102

    def pause(self, seconds: float) -> None:
        """Wait, where calls are repeated."""
        if self.go is not None:
            threading.Event().wait(seconds)

    def is_over(self) -> bool:
        """Whether all calls are made."""
        calls, done = len(self.own.calls), self.task.calls
        return not calls or (done >= calls and done % calls == 0 and (self.go is None or self.go.exists()))

    def come_to_the_end(self) -> None:
        """All calls are made: end now, or wait for the last ack or for a pause."""
        if self.own.end == "deactivate" and self.go is not None:
            Path(self.out, f"{self.own.name}-{self.task.index}.{OVER}").touch()
        elif self.own.end != "ack" or not self.open:
            self.end_now()

    def deactivate(self) -> None:
        """End, if the program wants it here."""
        if self.own.end == "deactivate" and self.is_over():
            self.end_now()

    def end_now(self) -> None:
        """Call `end`, and remember it."""
        if not self.ended:
            self.end()
            self.ended = True

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401  # the id may have any type
        """Remember it."""
        self.task.acked.append(tup_id)
        self.settle(tup_id)

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401
        """Remember it, and replay the root as the program says."""
        self.task.failed.append(tup_id)
        if self.own.replay == "never":
            self.settle(tup_id)
        elif self.own.replay == "queue":
            self.queue.append(self.open[tup_id])
        else:
            self.send(self.open[tup_id])

    def settle(self, tup_id: str) -> None:
        """Forget a root; perhaps it was the last."""
        self.open.pop(tup_id, None)
        if self.own.end == "ack" and not self.open and self.is_over():
            self.end_now()

    def send(self, root: Root) -> None:
        """Emit a root, in its next attempt."""
        attempt = self.task.attempts.get(root.identity, 0) + 1
        self.task.attempts[root.identity] = attempt
        tup_id = root.identity if self.own.ids else None
        if tup_id is not None:
            self.open[tup_id] = root
        stream = root.emits[0][1].stream
        direct = direct_task(self, stream, root.identity)
        rows = [
            (identity, attempt, key_of(emit.key), self.value(identity, emit, attempt)) for identity, emit in root.emits
        ]
        if not root.columns:
            self.emit(rows[0], tup_id=tup_id, stream=stream, direct_task=direct)
            return
        batch = dict(zip(FIELDS, map(list, zip(*rows, strict=True)), strict=True))
        is_row = len(rows) == 1 and tup_id is not None and root.identity == root.emits[0][0]
        if is_row:
            self.emit_columns(batch, None, stream, direct, ids=[tup_id])
        else:
            self.emit_columns(batch, tup_id, stream, direct)

    def value(self, identity: str, emit: Emit, attempt: int) -> object:
        """The value of an emit; a bad one in the first attempt only."""
        if emit.bad and attempt == 1:
            return bad_value(emit.bad, self.program.tuple_max_bytes)
        return value_of(emit.kind, emit.size, identity)


class ColumnSpout(ProgramSpout):
    """The same for programs with columns."""

    columns = True


class StatefulSpout(StatefulTask, ProgramSpout):
    """A spout that goes on where the checkpoint was."""


class StatefulColumnSpout(StatefulTask, ColumnSpout):
    """The same for programs with columns."""


def direct_task(component: Any, stream: str, identity: str) -> int | None:  # noqa: ANN401  # a spout or bolt
    """The task that a direct emit of a component names; None if no consumer wants one."""
    for bolt, each in component.program.consumers(component.own.name, stream):
        if each.grouping == "DIRECT":
            tasks = component.context.get_component_tasks(bolt.name)
            return int(tasks[hash_of(identity) % len(tasks)])
    return None
