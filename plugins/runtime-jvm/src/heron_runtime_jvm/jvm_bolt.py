"""A bolt whose code runs in a JVM.

The task thread collects rows and sends them in batches. The JVM works meanwhile, so a tuple is acked, or failed, some
time after `process` has returned. `process` waits while the JVM has not executed what it has; then the input of the
task fills, and back pressure reaches the spouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack, cast

from heron.api import (
    HeronComponentSpec,
    IUpdatable,
    PlainBatch,
    PlainBolt,
    Stream,
    TopologyContext,
    TopologyReliabilityMode,
    Tuple,
    TupleHelper,
    api_constants,
)
from heron.api.component_spec import Inputs
from heron.api.config import setting
from heron.api.state import StatefulComponent
from heron.clock import monotonic_s
from heron.errors import CheckpointError
from heron_runtime_jvm.frame_window import FrameWindow
from heron_runtime_jvm.frames import Frame, FrameKind, encoded
from heron_runtime_jvm.java_values import sendable, unsendable
from heron_runtime_jvm.jvm_bolt_output import JvmBoltOutput
from heron_runtime_jvm.jvm_protocol import UPDATE_S, JvmProtocol, java_child
from heron_runtime_jvm.jvm_settings import JvmArguments, JvmSettings
from heron_runtime_jvm.jvm_spec import jvm_spec
from heron_runtime_jvm.pending_tuples import PendingTuples
from heron_runtime_jvm.setup import plan_of, setup_of
from heron_runtime_multilang.child_host import ChildHost
from heron_runtime_multilang.child_io import ChildIo

__all__ = ["JvmBolt"]

_WAITING_BYTES = 64 * 1024  # that no pipe has taken: the JVM does not read


class JvmBolt(PlainBolt, StatefulComponent, IUpdatable):
    """A bolt in a JVM: ``JvmBolt.spec(java_class="com.example.Count", class_path=["*"], outputs=["word", "count"])``.

    A subclass may set the arguments as attributes; `JvmArguments` describes them.
    """

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        inputs: Inputs | None = None,
        par: int = 1,
        config: Mapping[str, object] | None = None,
        optional_outputs: Sequence[str | Stream] | None = None,
        **arguments: Unpack[JvmArguments],
    ) -> HeronComponentSpec:
        """Return this bolt as a part of a topology; see `heron.api.BaseBolt.spec` and `JvmArguments`.

        Raises:
            TopologyError: when an argument has the wrong type or range.
        """
        config, outputs = jvm_spec(cls, name, config, optional_outputs, arguments)
        return super().spec(name, inputs, par, config, outputs)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Start the JVM.

        Raises:
            JavaError: when there is no Java, or its compiler refuses the class path.
            ChildError: when the JVM ends before the bolt is prepared.
        """
        mode = setting(config, api_constants.TOPOLOGY_RELIABILITY_MODE)
        settings = JvmSettings.of_config(config)
        child = java_child(settings, context.get_component_id())
        self._keeps = mode != TopologyReliabilityMode.ATMOST_ONCE
        self._tick_s = config.get(api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS)
        self._tick_due_s = float("inf")
        self._tick_period_s = float(self._tick_s) if isinstance(self._tick_s, int | float) else float("inf")
        self._most = child.max_pending
        anchors_count = mode == TopologyReliabilityMode.ATLEAST_ONCE
        expires = anchors_count and setting(config, api_constants.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS)
        timeout_s = cast("float", setting(config, api_constants.TOPOLOGY_MESSAGE_TIMEOUT_SECS))
        self._pending = PendingTuples(2.0 * timeout_s if expires else float("inf"))
        self._output = JvmBoltOutput(self, self._pending, anchors_count=anchors_count)
        self._window = FrameWindow()
        self._last_id = self._done = 0
        self._kind: type[Tuple] | None = None
        self._rows: list[Sequence[object]] = []
        self._flush_is_queued = False
        self._collector_calls = context.threadsafe_collector()
        self._protocol = JvmProtocol(
            lambda: setup_of(settings, context, is_spout=False, tracks=self._keeps), child.message_bytes, context
        )
        exactly = mode == TopologyReliabilityMode.EFFECTIVELY_ONCE
        self._host = ChildHost(child, context, self, self._protocol, self._drain, deaths_end_task=exactly)
        self._host.start()
        self.author_place = self._host.place

    def process(self, tup: Tuple) -> None:
        """Give a tuple to the JVM; wait while it has too much.

        Raises:
            SerializationError: when Java cannot receive a value as it is.
        """
        io = self._host.io
        if (io is None or self._is_full(io)) and not self._await_room():
            return
        row = sendable(tup.values)
        kind = type(tup)
        if kind is not self._kind or len(self._rows) >= self._window.frame_rows:
            self._send()
            self._kind = kind
        self._last_id += 1
        self._rows.append(row)
        if self._keeps:
            self._pending.by_id[self._last_id] = tup
        self._flush_soon()

    def process_plain(self, batch: PlainBatch) -> None:
        """Give a batch to the JVM as it is; wait while it has too much."""
        io = self._host.io
        if (io is None or self._is_full(io)) and not self._await_room():
            return
        self._send()
        first, self._last_id = self._last_id + 1, self._last_id + batch.rows
        if self._keeps:
            self._pending.add(first, batch)
        if (io := self._host.io) is not None:
            source = (batch.component, batch.stream, batch.task)
            frame = encoded(FrameKind.PLAIN_TUPLES, first, *source, batch.payload)
            self._window.sent(self._last_id, len(frame), batch.rows)
            io.input.send(frame)
            self._flush_soon()

    def process_tick(self, tup: Tuple) -> None:
        """Give the JVM a tick; none while it does not read."""
        self._tick()

    def pre_save(self, checkpoint_id: str) -> None:
        """Wait until the JVM has settled all tuples: their output belongs to this checkpoint.

        Raises:
            CheckpointError: when it does not; the checkpoint fails.
        """
        self._await_done(monotonic_s() + self._host.settings.finish_timeout_s, settled=True)
        if left := len(self._pending):
            msg = f"the bolt in the JVM has not settled {left} tuples; it has to ack or fail each"
            raise CheckpointError(msg)

    def finish(self) -> None:
        """Wait until the JVM has settled all tuples, then for its end.

        Raises:
            ChildError: when the JVM dies or is killed meanwhile, because the output would be incomplete.
        """
        host, death = self._host, self._host.death
        limit_s = host.settings.finish_timeout_s
        self._await_done(monotonic_s() + limit_s, settled=True)
        end = host.stop(self._drain, limit_s)
        if host.death is not None and host.death is not death:
            raise host.death
        if end is not None and (end.fault or end.code or end.unfinished_bytes):
            what = f"failed after all input had ended: it {end.describe()}"
            raise host.error(what, end.how)
        if left := len(self._pending):
            self._fail_pending()
            self.report_error(host.error(f"has not settled {left} tuples; a bolt has to ack or fail each", "settle"))

    def update(self, context: TopologyContext) -> None:
        """Tell the JVM the new tasks, when it has executed what it has: that goes to the old ones."""
        self._await_done(monotonic_s() + UPDATE_S, settled=False)
        if (io := self._host.io) is not None:
            io.input.send(encoded(FrameKind.PLAN, plan_of(context)))
            io.input.flush()

    def close(self) -> None:
        """End the JVM."""
        if (host := getattr(self, "_host", None)) is not None:
            host.stop(lambda: None)

    def _send(self) -> None:
        """Hand the collected rows to the pipe. They are lost with a child that is gone: `_drain` has failed them."""
        rows, self._rows = self._rows, []
        if rows and self._kind is not None and (io := self._host.io) is not None:
            kind = self._kind
            first = self._last_id - len(rows) + 1
            try:
                frame = encoded(FrameKind.TUPLES, first, kind.component, kind.stream, kind.task, rows)
            except (ValueError, TypeError, RecursionError):
                self._send_one_by_one(io, first, kind, rows)
            else:
                self._window.sent(self._last_id, len(frame), len(rows))
                io.input.send(frame)

    def _send_one_by_one(self, io: ChildIo[Frame], first: int, kind: type[Tuple], rows: list[Sequence[object]]) -> None:
        """A text of a row has half a character: only its tuple fails. A frame without rows takes its id."""
        source = (kind.component, kind.stream, kind.task)
        for number, row in enumerate(rows, first):
            try:
                frame = encoded(FrameKind.TUPLES, number, *source, [row])
            except (ValueError, TypeError, RecursionError) as error:
                frame = encoded(FrameKind.TUPLES, number, *source, [])
                self._output.fail([number, 1])
                self.report_error(unsendable(row, error))
            self._window.sent(number, len(frame), 1)
            io.input.send(frame)

    def _flush_soon(self) -> None:
        if not self._flush_is_queued:
            self._flush_is_queued = True
            self._collector_calls.call(self._flush)

    def _flush(self) -> None:
        self._flush_is_queued = False
        self._send()
        if self._host.io is not None:
            self._host.io.input.flush()

    def _drain(self) -> None:
        """Carry out what the JVM has sent; start it again when it has died."""
        host = self._host
        if (io := host.io) is None:
            host.restart_if_due()
            return
        end = io.end
        for frame in io.take():
            if io.is_at_fault:
                break
            try:
                self._carry_out(frame, io)
            except (ValueError, TypeError, KeyError, IndexError) as error:
                io.kill(f"it sent a frame of the kind {frame[0]!r} that cannot be read: {error}")
        if end is not None and not host.is_stopping:
            self._fail_pending()
            host.died(io, end)

    def _carry_out(self, frame: Frame, io: ChildIo[Frame]) -> None:
        kind = frame[0]
        if kind == FrameKind.EMIT:
            _, stream, task, rows, links = frame
            self._output.emit_rows(str(stream), cast("int", task), cast("list[list[object]]", rows), links)
        elif kind == FrameKind.EMIT_PLAIN:
            _, stream, count, links, payload = frame
            self._output.emit_batch(str(stream), cast("int", count), links, cast("bytes", payload))
        elif kind == FrameKind.ACK:
            self._output.ack(cast("list[int]", frame[1]))
        elif kind == FrameKind.FAIL:
            self._output.fail(cast("list[int]", frame[1]))
        elif kind == FrameKind.DONE:
            self._done = max(self._done, min(cast("int", frame[1]), self._last_id))
            self._window.done(self._done)
            self._pending.drop_expired(self._last_id)
        elif kind == FrameKind.ASK:
            _, stream, row, link = frame
            ids = self._output.emit(str(stream), 0, cast("list[object]", row), link, need_task_ids=True)
            self._host.reply(io, encoded(FrameKind.TASK_IDS, ids or []))
        else:
            self._host.carry_out(frame, io)

    def _is_full(self, io: ChildIo[Frame]) -> bool:
        return (
            self._last_id - self._done >= self._most or self._window.is_full or io.input.waiting_bytes > _WAITING_BYTES
        )

    def _await_room(self) -> bool:
        """Wait until the JVM takes more; False if the process is asked to stop.

        Ticks go on, because a bolt may settle a batch by a tick; acks leave, because their roots would expire.
        """
        self._tick_due_s = monotonic_s() + self._tick_period_s
        while True:
            self._flush()
            self._drain()
            io = self._host.io
            if io is not None:
                if not self._is_full(io):
                    return True
                self._tick(if_due=True)
            if self.flush_if_due():
                return False
            self._host.wait()

    def _await_done(self, deadline_s: float, *, settled: bool) -> None:
        """Carry out what the JVM sends until it has executed all tuples, and `settled` them too; ticks go on."""
        self._tick_due_s = monotonic_s() + self._tick_period_s
        self._flush()
        self._drain()
        while (self._done < self._last_id or (settled and len(self._pending))) and monotonic_s() < deadline_s:
            self._tick(if_due=True)
            self._host.wait()
            self._drain()

    def _tick(self, *, if_due: bool = False) -> None:
        if if_due:
            if monotonic_s() < self._tick_due_s:
                return
            self._tick_due_s = monotonic_s() + self._tick_period_s
        io = self._host.io
        if io is None or io.input.waiting_bytes > _WAITING_BYTES:
            return
        self._send()
        source = (TupleHelper.TICK_SOURCE_COMPONENT, TupleHelper.TICK_TUPLE_ID, -1)
        io.input.send(encoded(FrameKind.TUPLES, 0, *source, [[self._tick_s]]))
        io.input.flush()

    def _fail_pending(self) -> None:
        self._rows = []
        self._done = self._last_id
        self._window.done(self._done)
        self._output.fail_all()
