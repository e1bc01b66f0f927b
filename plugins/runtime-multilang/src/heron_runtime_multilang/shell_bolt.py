"""A bolt whose code runs in a child process.

The task thread writes tuples for the child and carries out what the child sends. The child works meanwhile, so a tuple
is acked, or failed, some time after `process` has returned. `process` waits while the child has too much; then the
input of the task fills, and back pressure reaches the spouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

from heron.api import (
    Bolt,
    HeronComponentSpec,
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
from heron_runtime_multilang.child_host import ChildHost
from heron_runtime_multilang.child_io import ChildIo
from heron_runtime_multilang.child_message import ChildMessage
from heron_runtime_multilang.child_settings import ChildArguments, ChildSettings
from heron_runtime_multilang.framing import ChildOutput, RowWriter
from heron_runtime_multilang.multilang_protocol import MultilangProtocol
from heron_runtime_multilang.row_check import RowCheck
from heron_runtime_multilang.shell_spec import shell_spec

__all__ = ["ShellBolt"]

_WAITING_BYTES = 64 * 1024  # that no pipe has taken: the child does not read
_RULE = "a child has to ack or fail each"


class ShellBolt(Bolt, StatefulComponent):
    """A bolt in a child process: ``ShellBolt.spec(command="python3", script="count.py", outputs=["word", "count"])``.

    A subclass may set the arguments as attributes; `ChildArguments` describes them. The child has to ack or fail each
    tuple, as in Storm.
    """

    command: ClassVar[str | Sequence[str]] = ()

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        inputs: Inputs | None = None,
        par: int = 1,
        config: Mapping[str, object] | None = None,
        optional_outputs: Sequence[str | Stream] | None = None,
        **child: Unpack[ChildArguments],
    ) -> HeronComponentSpec:
        """Return this bolt as a part of a topology; see `heron.api.BaseBolt.spec` and `ChildArguments`.

        Raises:
            TopologyError: when an argument has the wrong type or range.
        """
        config, outputs = shell_spec(cls, name, config, optional_outputs, child)
        return super().spec(name, inputs, par, config, outputs)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Start the child.

        Raises:
            ChildError: when it cannot be started, or ends before it is ready.
        """
        mode = setting(config, api_constants.TOPOLOGY_RELIABILITY_MODE)
        exactly = mode == TopologyReliabilityMode.EFFECTIVELY_ONCE
        settings = ChildSettings.of_config(config)
        self._tracks = mode == TopologyReliabilityMode.ATLEAST_ONCE
        self._keeps = mode != TopologyReliabilityMode.ATMOST_ONCE
        self._tick_s = config.get(api_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS)
        self._tick_due_s = float("inf")
        self._check = RowCheck(settings.framing, settings.integer_bits).check
        self._most = settings.max_pending
        self._pending: dict[str, Tuple | None] = {}
        self._last_id = 0
        self._exactly = exactly
        self._settled = 0
        self._last_given_up = 0  # the id of the last tuple that was failed because the child had not settled it
        self._forgets = False
        self._protocol = MultilangProtocol(settings, context)
        self._host = ChildHost(settings, context, self, self._protocol, self._drain, deaths_end_task=exactly)
        self._writers: dict[type[Tuple], RowWriter] = {}
        self._host.start()
        self.author_place = self._host.place

    def process(self, tup: Tuple) -> None:
        """Give a tuple to the child; wait while it has too much.

        Raises:
            SerializationError: when the child cannot receive a value as it is.
        """
        io = self._host.io
        if io is None or io.input.waiting_bytes > _WAITING_BYTES or len(self._pending) >= self._most:
            io = self._await_room()
        self._check(tup.values)
        kind = type(tup)
        write = self._writers.get(kind)
        if write is None:
            write = self._writers[kind] = self._protocol.framing.row_writer(tup.component, tup.stream, tup.task)
        self._last_id += 1
        message = write(self._last_id, tup.values)
        if not self._forgets:
            self._pending[str(self._last_id)] = tup
        io.input.send(message)
        self._host.flush_soon()

    def process_tick(self, tup: Tuple) -> None:
        """Give the child a tick, which it has to ack; none while it does not read."""
        io = self._host.io
        if io is not None and io.input.waiting_bytes <= _WAITING_BYTES:
            self._tick(io)

    def pre_save(self, checkpoint_id: str) -> None:
        """Wait until the child has settled all tuples: their output belongs to this checkpoint.

        Raises:
            CheckpointError: when it does not; the checkpoint fails.
        """
        deadline_s = monotonic_s() + self._host.settings.finish_timeout_s
        self._settle_all(deadline_s)
        if self._pending:
            msg = f"the child has not settled {len(self._pending)} tuples; {_RULE}"
            raise CheckpointError(msg)

    def finish(self) -> None:
        """Wait until the child has settled all tuples, then for its end.

        Raises:
            ChildError: when the child dies or is killed meanwhile, because the output would be incomplete.
        """
        host, death = self._host, self._host.death
        limit_s = host.settings.finish_timeout_s
        self._settle_all(monotonic_s() + limit_s)
        end = host.stop(self._drain, limit_s)
        if host.death is not None and host.death is not death:
            raise host.death
        if end is not None and (end.fault or end.code < 0):
            what = f"failed after all input had ended: it {end.describe()}"
            raise host.error(what, end.how)
        if end is not None and (end.code or end.unfinished_bytes):
            what = f"may have left out output after all input had ended: it {end.describe()}"
            self.log(str(host.error(what, end.how)), "error")
        if self._pending:
            left = len(self._pending)
            self._fail_pending()
            what = f"has not settled {left} tuples; {_RULE}"
            self.report_error(host.error(what, "settle"))

    def close(self) -> None:
        """End the child."""
        if (host := getattr(self, "_host", None)) is not None:
            host.stop(lambda: None)

    def _drain(self) -> None:
        """Carry out what the child has sent; start it again when it has died."""
        host = self._host
        if (io := host.io) is None:
            host.restart_if_due()
            return
        end = io.end
        for output in io.take():
            if io.is_at_fault:
                break
            if isinstance(output, ChildMessage):
                self._carry_out(output, io)
            else:
                host.carry_out(output, io)
        if end is not None and not host.is_stopping:
            self._fail_pending()
            host.died(io, end)

    def _carry_out(self, message: ChildMessage, io: ChildIo[ChildOutput]) -> None:
        command = message.command
        if command == "ack" or command == "fail":  # noqa: PLR1714  # each tuple comes here
            tup = self._pending.pop(str(message.id), None)
            if tup is not None:
                self._settled += 1
                (self.ack if command == "ack" else self.fail)(tup)
        elif command == "emit":
            self._emit(message, io)
        else:
            self._host.carry_out(message, io)

    def _emit(self, message: ChildMessage, io: ChildIo[ChildOutput]) -> None:
        asked = message.wants_task_ids
        anchors: list[Tuple] | None = None
        if self._tracks and message.anchors:
            anchors = self._anchors(message.anchors, io)
            if io.is_at_fault:
                return
        try:
            ids = self.emit(
                message.values if message.values is not None else [],
                stream=message.stream or "default",
                anchors=anchors,
                direct_task=message.task or None,
                need_task_ids=asked,
            )
        except Exception as error:
            ids = []
            for name in [message.anchors] if isinstance(message.anchors, str) else message.anchors or ():
                if (tup := self._pending.pop(name, None)) is not None:
                    self.fail(tup)
            self.report_error(error)
        finally:
            if asked:
                self._protocol.reply(io, self._host, ids)

    def _anchors(self, names: list[str] | str, io: ChildIo[ChildOutput]) -> list[Tuple]:
        found = []
        for name in [names] if isinstance(names, str) else names:
            if name not in self._pending:
                if name.isdecimal() and int(name) <= self._last_given_up:
                    continue
                io.kill(f"it anchored an emit to the tuple {name!r}, which it does not have, or has settled")
            elif (tup := self._pending[name]) is not None:
                found.append(tup)
        return found

    def _await_room(self) -> ChildIo[ChildOutput]:
        """Wait until the child takes more; ticks go on, because a child may settle a batch by a tick.

        A child that gives signs of life, and settles nothing for `finish_timeout_s`, has forgotten its tuples.
        """
        limit_s = self._host.settings.finish_timeout_s
        self._tick_due_s = monotonic_s() + self._tick_period_s()
        settled, known, late_s = -1, self._host.io, 0.0
        while True:
            heard_s = self._host.io.heard_s if self._host.io is not None else 0.0
            self._drain()
            io = self._host.io
            if self._settled != settled or io is not known:
                settled, known, late_s = self._settled, io, monotonic_s() + limit_s
            elif heard_s > late_s and len(self._pending) >= self._most:
                self._give_up(limit_s)
            if io is not None and io.input.waiting_bytes <= _WAITING_BYTES:
                if len(self._pending) < self._most:
                    return io
                self._tick_if_due(io)
            self._host.wait()

    def _give_up(self, limit_s: float) -> None:
        """The child has forgotten its tuples: fail them, because it would never get another one.

        Effectively once no tuple may be lost, so the child is killed, and its task ends.
        """
        io = self._host.io
        if not (self._settled or self._keeps or self._tick_s):
            self._forget(limit_s)
            return
        what = f"has not settled {len(self._pending)} tuples for {limit_s:g} s (finish_timeout_s); {_RULE}"
        if self._exactly and io is not None:
            io.kill(f"it {what}")
            return
        self._last_given_up = self._last_id
        self._fail_pending()
        self.report_error(self._host.error(what, "settle"))

    def _settle_all(self, deadline_s: float) -> None:
        self._tick_due_s = monotonic_s() + self._tick_period_s()
        while self._pending and monotonic_s() < deadline_s:
            self._drain()
            if self._pending:
                if (io := self._host.io) is not None:
                    self._tick_if_due(io)
                self._host.wait()
        self._drain()

    def _forget(self, limit_s: float) -> None:
        """Keep no more tuples of a child that settles none; at most once nobody needs them."""
        self._forgets = True
        self._pending.clear()
        what = f"the child has settled none of {self._most} tuples for {limit_s:g} s (finish_timeout_s)"
        self.log(f"{what}; from now on none is kept for it", "warn")

    def _tick_period_s(self) -> float:
        return float(self._tick_s) if isinstance(self._tick_s, int | float) else float("inf")

    def _tick_if_due(self, io: ChildIo[ChildOutput]) -> None:
        if monotonic_s() >= self._tick_due_s:
            self._tick_due_s = monotonic_s() + self._tick_period_s()
            self._tick(io)

    def _tick(self, io: ChildIo[ChildOutput]) -> None:
        self._last_id += 1
        source = (TupleHelper.TICK_SOURCE_COMPONENT, TupleHelper.TICK_TUPLE_ID, -1)
        if not self._forgets:
            self._pending[str(self._last_id)] = None
        io.input.send(self._protocol.framing.row_writer(*source)(self._last_id, [self._tick_s]))
        io.input.flush()

    def _fail_pending(self) -> None:
        pending, self._pending = self._pending, {}
        for tup in pending.values():
            if tup is not None:
                self.fail(tup)
