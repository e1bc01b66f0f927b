"""A task as its runner uses it: plan, output, metrics, reports. Belongs to the task thread.

The component is constructed when the first plan arrives. Later plans replace the routes and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from heron.api.api_constants import (
    TOPOLOGY_COMPONENT_OUTPUT_BPS,
    TOPOLOGY_INSPECT_TUPLES,
    TOPOLOGY_RELIABILITY_MODE,
    TopologyReliabilityMode,
)
from heron.api.config import merged_config, setting
from heron.api.definition import ComponentDefinition, ComponentKind, InputDefinition, StreamDefinition
from heron.api.stream import ICustomGrouping
from heron.clock import SystemClock
from heron.errors import RemoteProtocolError
from heron.instance.codec.serializers import Serializers
from heron.instance.gateway.gateway import Gateway
from heron.instance.output.out_stream import OutStream
from heron.instance.output.stream_origin import StreamOrigin
from heron.instance.output.stream_routes import StreamRoutes, routes_of
from heron.instance.queues.flow_limits import OutputLimit
from heron.instance.replay.replay_policy import replays_somewhere
from heron.instance.state.keyed_state import KeyedStateStore
from heron.instance.state.owned_groups import has_single_keys, receives_by_key
from heron.instance.state.state_backends import task_store
from heron.instance.task_telemetry import TakeLetters, TaskTelemetry
from heron.instance.user.queued_collector import QueuedCollector, QueuedTarget
from heron.instance.user.task_context import TaskContext
from heron.instance.user.user_component import UserPackage
from heron.kernel.role_spec import InstanceSpec
from heron.kernel.settings import EngineSettings
from heron.planner.key_group import key_groups_of
from heron.planner.physical_plan import PhysicalPlan, PlanIndex, TopologyState, UpdatePhase

if TYPE_CHECKING:  # topologies without checkpoints need not import them
    from heron.checkpoints.archive import CheckpointArchive
    from heron.instance.acks.failed_rows import FailedRows
    from heron.instance.replay.letter_store import StoredLetters
    from heron.instance.state.task_checkpoints import TaskCheckpoints

__all__ = ["StreamMaker", "Task", "letters_of"]

StreamMaker = Callable[[int, StreamDefinition, StreamRoutes, StreamOrigin], OutStream]

_log = logging.getLogger(__name__)


class Task:
    """The parts of one task, and the operations on them that all runners share."""

    def __init__(
        self,
        spec: InstanceSpec,
        settings: EngineSettings,
        gateway: Gateway,
        plan: PhysicalPlan,
        archive: CheckpointArchive | None = None,
    ) -> None:
        """Without an `archive` the task takes no checkpoints."""
        self.spec = spec
        self.settings = settings
        self.gateway = gateway
        self.index = PlanIndex(plan, spec.task_id)
        self.definition, self.config = _definition(plan, spec)
        self.serializers = Serializers(spec.serializers)
        is_spout = self.definition.kind is ComponentKind.SPOUT
        self.telemetry = telemetry = TaskTelemetry(spec, settings, gateway, self._restores, is_spout=is_spout)
        self.metrics, self.errors, self.spans = telemetry.metrics, telemetry.errors, telemetry.spans
        self.errors.add_letter = lambda letter: letters_of(self).add_of_step(letter)
        self.errors.shows_values = lambda: setting(self.config, TOPOLOGY_INSPECT_TUPLES) is True
        self.errors.fields_of = plan.topology.fields_of
        self.letters: StoredLetters | None = None
        self.take_letters: TakeLetters = lambda ids, *, drop: letters_of(self).take_of_steps(ids, drop=drop)
        groups, single = key_groups_of(plan.topology), has_single_keys(self.definition)
        store = task_store(spec, self.config)
        self.keyed = KeyedStateStore(spec.component, spec.task_id, groups, SystemClock(), single=single, store=store)
        self._set_owned()
        inspected = gateway.inspected
        inspected.states = self.keyed.held_parts
        inspected.inputs, inspected.outputs = len(self.definition.inputs), len(self.definition.outputs)
        self.checkpoints: TaskCheckpoints | None = None
        if archive is not None and plan.checkpoints is not None:
            from heron.instance.state.task_checkpoints import TaskCheckpoints  # noqa: PLC0415  # see above

            self.checkpoints = TaskCheckpoints(
                spec,
                archive,
                self.keyed,
                gateway.data_out.put_control,
                gateway.data_in.sleeper.nudge,
                gateway.machine,
            )
        self._make_context()
        self.package = UserPackage(Path(spec.package_dir))
        self._limit_output()

    @property
    def paused(self) -> bool:
        """Whether the topology is paused, or an update still prepares this task.

        A spout emits nothing before the switch, because an update that is withdrawn must leave no rows.
        """
        return self.is_prepared() or self.index.plan.state is TopologyState.PAUSED

    def is_prepared(self) -> bool:
        """Whether an update adds this task, and no data is routed to it yet."""
        update = self.index.plan.update
        return update is not None and update.phase is UpdatePhase.PREPARE and self.spec.task_id in update.added

    def is_restored_first(self) -> bool:
        """Whether it is prepared with the state of a checkpoint, and restored from a later one before it counts.

        What it emits until then must not reach a task that takes part in that checkpoint.
        """
        return (
            self.is_prepared()
            and self.checkpoints is not None
            and self.index.plan.checkpoints_of(self.spec.component) is not None
        )

    def origin(self) -> StreamOrigin:
        """The origin that the task's segments carry, and the limits of its batches."""
        limit, batch_bytes = self.gateway.data_out.limit, self.settings.batch_bytes
        return StreamOrigin(
            self.spec.task_id,
            self.spec.incarnation,
            self.index.plan.version,
            self.settings.batch_rows,
            batch_bytes if limit is None else min(batch_bytes, limit.batch_bytes),
            self.settings.tuple_max_bytes,
            self._reject,
            self.serializers.for_output(self.config),
            self.serializers,
            self.config,
            self.gateway.inspected,
            self.spans,
        )

    def is_member_of(self, plan: PhysicalPlan) -> bool:
        """Whether the task is one of the tasks of a plan."""
        return any(each.task_id == self.spec.task_id for each in plan.tasks)

    def is_removed(self) -> bool:
        """Whether an update removes this task, and its data takes the new routes."""
        update = self.index.plan.update
        return update is not None and update.phase is UpdatePhase.SWITCH and self.spec.task_id in update.removed

    @property
    def tracks_acks(self) -> bool:
        """Whether delivery is at least once."""
        mode = setting(self.index.plan.topology.config, TOPOLOGY_RELIABILITY_MODE)
        return mode == TopologyReliabilityMode.ATLEAST_ONCE

    def failed_rows(self) -> FailedRows | None:
        """Collects why tuples of this task fail; None if no spout of the topology replays them."""
        if not replays_somewhere(self.index.plan.topology):
            return None
        from heron.instance.acks.failed_rows import FailedRows  # noqa: PLC0415  # most topologies need not import it

        return FailedRows(self.spec.component, self.spec.task_id, self.errors.places)

    def out_streams(self, origin: StreamOrigin, make: StreamMaker = OutStream) -> list[OutStream]:
        """The task's output streams, with their routes under the present plan."""
        return [
            make(number, stream, routes_of(self.index, self.spec.task_id, stream, self._custom(stream.name)), origin)
            for number, stream in enumerate(self.definition.outputs)
        ]

    def take_plan(self, plan: PhysicalPlan) -> bool:
        """Replaces the plan by a newer one; whether the streams need new routes."""
        before = self.index.plan
        self.definition, self.config = _definition(plan, self.spec)
        self.index = self.context.index = PlanIndex(plan, self.spec.task_id)
        self._set_owned()
        self._limit_output()
        return (plan.tasks, plan.update, plan.key_owners) != (before.tasks, before.update, before.key_owners)

    def restart(self, plan: PhysicalPlan) -> None:
        """The component is constructed again: plan, context, and the metrics that the author registers, are new."""
        self.queued_target.clear()  # threads of the former component call into nothing
        self.metrics.forget_registered()
        self.take_plan(plan)
        self._make_context()

    def _restores(self) -> int:
        return self.checkpoints.restores if self.checkpoints is not None else 0

    def _set_owned(self) -> None:
        strict = self.index.plan.checkpoints is not None or not receives_by_key(self.definition)
        self.keyed.set_owned(self._owned_groups, strict=strict)

    def _owned_groups(self) -> frozenset[int]:
        return self.index.owned_groups(self.spec.task_id)

    def _make_context(self) -> None:
        self.queued_target = QueuedTarget()
        self.queued = QueuedCollector(self.queued_target, self.gateway.data_in.sleeper)
        self.context = TaskContext(self.index, self.spec.task_id, self.metrics, self.queued, self.keyed)

    def _limit_output(self) -> None:
        """Divides the component's limit among its tasks, as in Heron."""
        bytes_per_s, limit = setting(self.config, TOPOLOGY_COMPONENT_OUTPUT_BPS), self.gateway.data_out.limit
        if not isinstance(bytes_per_s, int) or bytes_per_s < 0:
            if limit is not None:
                limit.lift()
            return
        share = bytes_per_s / max(1, len(self.index.tasks_of(self.spec.component)))
        if limit is None:
            self.gateway.data_out.limit_output(OutputLimit(share))
        else:
            limit.set_pace(share)

    def _custom(self, stream: str) -> Callable[[str, InputDefinition], ICustomGrouping]:
        def custom(consumer: str, subscription: InputDefinition) -> ICustomGrouping:
            grouping = self.package.custom_grouping(consumer, subscription)
            tasks = self.index.tasks_of(consumer)
            grouping.prepare(self.context, self.spec.component, stream, tasks)
            return grouping

        return custom

    def frames_refused(self, reason: str, rows: int) -> None:
        """Reports that frames of this task were refused, and counts their tuples as failed."""
        self.metrics.failed += rows
        self.errors.report("sending", RemoteProtocolError(reason), "the task continues without these tuples")

    def _reject(self, stream: str, row: object, error: Exception) -> None:
        self.metrics.failed += 1
        self.errors.rejected(self.definition, stream, row, error)


def _definition(plan: PhysicalPlan, spec: InstanceSpec) -> tuple[ComponentDefinition, dict[str, object]]:
    """The component of a task and its configuration, as the code of the task defines them."""
    topology = plan.topology_of(spec.task_id)
    component = topology.component(spec.component)
    return component, merged_config(topology.config, component.config)


def letters_of(task: Task) -> StoredLetters:
    """The dead letters of a task in files."""
    from heron.instance.replay.letter_store import StoredLetters  # noqa: PLC0415  # most tasks have none

    if task.letters is None:
        task.metrics.letters = task.letters = StoredLetters.of_task(
            task.spec, task.config, task.errors.note, task.errors.named
        )
    return task.letters
