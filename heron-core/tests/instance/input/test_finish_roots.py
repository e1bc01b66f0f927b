"""What a bolt emits in `finish`, when its replay fails."""

from __future__ import annotations

import pytest

from heron.api.bolt import Bolt
from heron.api.definition import StreamDefinition
from heron.instance.input.bolt_acks import FinishRoots
from heron.instance.metrics.task_metrics import TaskMetrics
from heron.instance.output.emitter import BoltEmitter
from heron.instance.output.stream_routes import ChosenSplitter, StreamRoutes
from heron.instance.queues.data_queue import DataOut, Sleeper
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.wakeup import Wakeup
from heron.kernel.queue_capacity import QueueCapacity
from parts import stream_origin


class Login(Bolt):
    """Emits with its collector."""

    outputs = ("name", "password")


@pytest.mark.parametrize(
    ("stays", "record"), [(True, {"name": "ada", "password": "hunter2"}), (False, "2 values without names")]
)
def test_a_replay_that_fails_is_reported_with_names(stays: bool, record: object) -> None:
    """A value without its name could not be hidden; here the receiving task, or the stream, has left the plan."""
    told: list[object] = []
    origin = stream_origin()
    out = DataOut(Wakeup(), Sleeper(), QueueCapacity(1_000_000, 1_000_000, 0.1), FrameLimits(1_000_000))
    emitter = BoltEmitter(origin, out)
    roots = FinishRoots(emitter, TaskMetrics(), lambda *failure: told.append(failure[3]))

    def plan(*tasks: int) -> None:
        splitter = ChosenSplitter()
        routes = StreamRoutes(splitters=(splitter,), direct_picks=(splitter.picks,), direct_tasks=frozenset(tasks))
        definition = StreamDefinition("logins", ("name", "password"))
        emitter.set_streams([roots.make_stream(0, definition, routes, origin)] if tasks else [])

    component = Login(emitter)
    roots.begin(component, lambda: plan(4))
    component.emit(["ada", "hunter2"], stream="logins", direct_task=4)
    plan(*(5,) * stays)
    roots.lose_all()
    assert told == [record]
