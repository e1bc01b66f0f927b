"""A spout whose code runs in a JVM. It gets turns: in each it emits a batch of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, Unpack, cast

from heron.api import (
    HeronComponentSpec,
    IUpdatable,
    PlainSpout,
    Stream,
    TopologyContext,
    TopologyReliabilityMode,
    api_constants,
)
from heron.api.config import setting
from heron.clock import monotonic_s
from heron.errors import UsageError
from heron_runtime_jvm.frames import Frame, FrameKind, encoded, links_of
from heron_runtime_jvm.jvm_protocol import UPDATE_S, JvmProtocol, java_child
from heron_runtime_jvm.jvm_settings import JvmArguments, JvmSettings
from heron_runtime_jvm.jvm_spec import jvm_spec
from heron_runtime_jvm.setup import plan_of, setup_of
from heron_runtime_multilang.child_host import ChildHost
from heron_runtime_multilang.child_io import ChildIo

__all__ = ["JvmSpout"]

_ROWS = 8192  # of a turn, whose time ends it before
_WAIT_S = 0.01  # in a call; acks and commands wait meanwhile


class JvmSpout(PlainSpout, IUpdatable):
    """A spout in a JVM: ``JvmSpout.spec(java_class="com.example.Lines", class_path=["*"], outputs=["line"])``.

    A subclass may set the arguments as attributes; `JvmArguments` describes them. A spout of Storm never ends. One
    whose class has the method ``public boolean hasEnded()`` ends when it returns true; see `heron.api.Spout.end`.
    """

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int = 1,
        config: Mapping[str, object] | None = None,
        optional_outputs: Sequence[str | Stream] | None = None,
        **arguments: Unpack[JvmArguments],
    ) -> HeronComponentSpec:
        """Return this spout as a part of a topology; see `heron.api.BaseSpout.spec` and `JvmArguments`.

        Raises:
            TopologyError: when an argument has the wrong type or range.
        """
        config, outputs = jvm_spec(cls, name, config, optional_outputs, arguments)
        return super().spec(name, par, config, outputs)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Start the JVM.

        Raises:
            UsageError: when the topology is effectively once: nothing can save the position of a child.
            JavaError: when there is no Java, or its compiler refuses the class path.
            ChildError: when the JVM ends before the spout is open.
        """
        mode = setting(config, api_constants.TOPOLOGY_RELIABILITY_MODE)
        if mode == TopologyReliabilityMode.EFFECTIVELY_ONCE:
            msg = (
                f"spout {context.get_component_id()!r}: a JVM cannot save its position in a checkpoint; use "
                "ATLEAST_ONCE, or write the spout in Python"
            )
            raise UsageError(msg)
        settings = JvmSettings.of_config(config)
        child = java_child(settings, context.get_component_id())
        most = cast("int", setting(config, api_constants.TOPOLOGY_MAX_SPOUT_PENDING))
        self._most = most or 2**62
        self._open = 0  # roots that are not settled
        self._has_ended = False
        self._active = True
        self._is_turn = False
        self._settled: dict[FrameKind, list[int]] = {FrameKind.ACKED: [], FrameKind.FAILED: []}  # as ranges
        self._flush_is_queued = False
        self._collector_calls = context.threadsafe_collector()
        tracks = mode == TopologyReliabilityMode.ATLEAST_ONCE
        self._protocol = JvmProtocol(
            lambda: setup_of(settings, context, is_spout=True, tracks=tracks), child.message_bytes, context
        )
        self._host = ChildHost(child, context, self, self._protocol, self._drain, takes_turns=True)
        self._start()
        self.author_place = self._host.place

    def next_tuple(self) -> None:
        """Give the JVM a turn, and emit what it has emitted.

        A spout that has ended is called only for the roots that have failed, and no more when a call emits nothing. So
        its turn is awaited.
        """
        io = self._host.io
        if io is None:
            self._drain()
            return
        if not self._is_turn:
            self._is_turn = True
            self._flush_settled()
            io.input.send(encoded(FrameKind.NEXT, max(1, min(_ROWS, self._most - self._open))))
        self._host.wait(_WAIT_S)
        self._drain()
        while self._has_ended and self._is_turn and self._host.io is io:
            self._host.wait()
            self._drain()

    def ack(self, tup_id: object) -> None:
        """Tell the JVM that a tree is complete, unless an earlier child emitted the root."""
        self._open -= 1
        self._note(FrameKind.ACKED, cast("int", tup_id))

    def ack_all(self, tup_ids: Sequence[object]) -> None:
        """`ack` for many."""
        self._open -= len(tup_ids)
        ids = cast("Sequence[int]", tup_ids)
        first, last = ids[0], ids[-1]
        if last - first == len(ids) - 1 and list(range(first, last + 1)) == ids:  # the usual case
            self._note(FrameKind.ACKED, first, len(ids))
        else:
            for each in ids:
                self._note(FrameKind.ACKED, each)

    def fail(self, tup_id: object) -> None:
        """Tell the JVM that a tree has failed, unless an earlier child emitted the root."""
        self._open -= 1
        self._note(FrameKind.FAILED, cast("int", tup_id))

    def activate(self) -> None:
        """Resume."""
        self._set_active(active=True)

    def deactivate(self) -> None:
        """Pause."""
        self._set_active(active=False)

    def update(self, context: TopologyContext) -> None:
        """Tell the JVM the new tasks, when its turn is over: what it has emitted goes to the old ones."""
        deadline_s = monotonic_s() + UPDATE_S
        while self._is_turn and monotonic_s() < deadline_s:
            self._host.wait()
            self._drain()
        if (io := self._host.io) is not None:
            io.input.send(encoded(FrameKind.PLAN, plan_of(context)))
            io.input.flush()

    def close(self) -> None:
        """End the JVM."""
        if (host := getattr(self, "_host", None)) is not None:
            host.stop(lambda: None)

    def _start(self) -> None:
        self._host.start()
        self._set_active(active=self._active)

    def _set_active(self, *, active: bool) -> None:
        self._active = active
        if (io := self._host.io) is not None:
            io.input.send(encoded(FrameKind.ACTIVATE if active else FrameKind.DEACTIVATE))
            io.input.flush()

    def _note(self, kind: FrameKind, first: int, count: int = 1) -> None:
        if first >> 40 == self._protocol.starts:
            self._settled[kind] += (first, count)
            if not self._flush_is_queued:
                self._flush_is_queued = True
                self._collector_calls.call(self._flush)

    def _flush(self) -> None:
        self._flush_is_queued = False
        self._flush_settled()
        if self._host.io is not None:
            self._host.io.input.flush()

    def _flush_settled(self) -> None:
        for kind, ids in self._settled.items():
            if ids:
                if self._host.io is not None:
                    self._host.io.input.send(encoded(kind, ids))
                self._settled[kind] = []

    def _drain(self) -> None:
        """Carry out what the JVM has sent; start it again when it has died."""
        host = self._host
        if (io := host.io) is None:
            if host.restart_if_due() is not None:
                self._set_active(active=self._active)
            return
        end = io.end
        for frame in io.take():
            if io.is_at_fault:
                break
            try:
                self._carry_out(frame, io)
            except (ValueError, TypeError, IndexError) as error:
                io.kill(f"it sent a frame of the kind {frame[0]!r} that cannot be read: {error}")
        if end is not None and not host.is_stopping:
            self._is_turn = False
            self._settled = {FrameKind.ACKED: [], FrameKind.FAILED: []}
            host.died(io, end)

    def _carry_out(self, frame: Frame, io: ChildIo[Frame]) -> None:
        kind = frame[0]
        if kind == FrameKind.EMIT:
            _, stream, task, given, links = frame
            rows = cast("list[list[object]]", given)
            roots = links_of(links, len(rows))
            for row, root in zip(rows, [None] * len(rows) if roots is None else roots, strict=True):
                self._emit(str(stream), cast("int", task), row, root)
        elif kind == FrameKind.EMIT_PLAIN:
            _, stream, count, links, payload = frame
            self._emit_plain(str(stream), cast("int", count), links, cast("bytes", payload))
        elif kind == FrameKind.TURN_OVER:
            self._is_turn = False
        elif kind == FrameKind.ASK:
            _, stream, values, link = frame
            task_ids = self._emit(str(stream), 0, cast("list[object]", values), link, need_task_ids=True)
            self._host.reply(io, encoded(FrameKind.TASK_IDS, task_ids or []))
        elif kind == FrameKind.END:
            self._has_ended = True
            self.end()
        else:
            self._host.carry_out(frame, io)

    def _emit_plain(self, stream: str, count: int, given: object, payload: bytes) -> None:
        links = links_of(given, count)
        try:
            rows = self.emit_plain(payload, count, stream, links)
        except Exception as error:
            for each in links or ():
                if each is not None:
                    self._note(FrameKind.FAILED, each)
            self.report_error(error)
            return
        if rows:
            for row, root in zip(rows, repeat(None) if links is None else links, strict=False):
                self._emit(stream, 0, row, root)
        elif links is not None:
            self._open += count if isinstance(links, range) else sum(each is not None for each in links)

    def _emit(
        self, stream: str, task: int, row: Sequence[object], root: object, *, need_task_ids: bool = False
    ) -> list[int] | None:
        try:
            ids = self.emit(row, root, stream, task or None, need_task_ids)
        except Exception as error:
            if root is not None:
                self._note(FrameKind.FAILED, cast("int", root))
            self.report_error(error)
            return None
        self._open += root is not None
        return ids
