"""A spout whose code runs in a child process: one command at a time, and the child's turn ends with its `sync`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

from heron.api import HeronComponentSpec, Spout, Stream, TopologyContext, TopologyReliabilityMode, api_constants
from heron.api.config import setting
from heron.clock import monotonic_s
from heron.errors import UsageError
from heron_runtime_multilang.child_host import ChildHost
from heron_runtime_multilang.child_io import ChildIo
from heron_runtime_multilang.child_message import ChildMessage
from heron_runtime_multilang.child_settings import ChildArguments, ChildSettings
from heron_runtime_multilang.framing import ChildOutput
from heron_runtime_multilang.multilang_protocol import MultilangProtocol
from heron_runtime_multilang.shell_spec import shell_spec

__all__ = ["ShellSpout"]


class ShellSpout(Spout):
    """A spout in a child process: ``ShellSpout.spec(command="node", script="words.js", outputs=["word"])``.

    A subclass may set the arguments as attributes; `ChildArguments` describes them. A spout of Storm never
    ends. A child that sends ``{"command": "end"}`` declares that it makes no new tuple; see `heron.api.Spout.end`.
    """

    command: ClassVar[str | Sequence[str]] = ()

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int = 1,
        config: Mapping[str, object] | None = None,
        optional_outputs: Sequence[str | Stream] | None = None,
        **child: Unpack[ChildArguments],
    ) -> HeronComponentSpec:
        """Return this spout as a part of a topology; see `heron.api.BaseSpout.spec` and `ChildArguments`.

        Raises:
            TopologyError: when an argument has the wrong type or range.
        """
        config, outputs = shell_spec(cls, name, config, optional_outputs, child)
        return super().spec(name, par, config, outputs)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Start the child.

        Raises:
            UsageError: when the topology is effectively once: nothing can save the position of a child.
            ChildError: when it cannot be started, or ends before it is ready.
        """
        mode = setting(config, api_constants.TOPOLOGY_RELIABILITY_MODE)
        if mode == TopologyReliabilityMode.EFFECTIVELY_ONCE:
            msg = (
                f"spout {context.get_component_id()!r}: a child process cannot save its position in a checkpoint; use "
                "ATLEAST_ONCE, or write the spout in Python"
            )
            raise UsageError(msg)
        settings = ChildSettings.of_config(config)
        self._protocol = MultilangProtocol(settings, context)
        self._host = ChildHost(settings, context, self, self._protocol)
        self._host.start()
        self.author_place = self._host.place
        self._active = True
        self._turn("activate")

    def next_tuple(self) -> None:
        """Let the child emit."""
        self._turn("next")

    def ack(self, tup_id: object) -> None:
        """Tell the child that a tree is complete, unless an earlier child emitted the root."""
        self._settle("ack", tup_id)

    def fail(self, tup_id: object) -> None:
        """Tell the child that a tree has failed, unless an earlier child emitted the root."""
        self._settle("fail", tup_id)

    def activate(self) -> None:
        """Resume."""
        self._active = True
        self._turn("activate")

    def deactivate(self) -> None:
        """Pause."""
        self._active = False
        self._turn("deactivate")

    def close(self) -> None:
        """End the child."""
        if (host := getattr(self, "_host", None)) is not None:
            host.stop(lambda: None)

    def _settle(self, command: str, tup_id: object) -> None:
        if isinstance(tup_id, tuple) and tup_id[0] == self._host.starts and self._host.io is not None:
            self._turn(command, tup_id[1])

    def _turn(self, command: str, tup_id: object = "") -> None:
        """Give the child a command, and carry out what it sends until its `sync`; start it again if it is time."""
        io = self._host.io
        if io is None:
            io = self._host.restart_if_due()
            if io is not None and self._active and command != "activate":
                self._take_turn(io, "activate", "")
        if io is not None and io is self._host.io:
            self._take_turn(io, command, tup_id)

    def _take_turn(self, io: ChildIo[ChildOutput], command: str, tup_id: object) -> None:
        host = self._host
        io.input.send_first(self._protocol.framing.encode({"command": command, "id": tup_id}))
        began_s = monotonic_s()
        while True:
            end = io.end
            if self._carry_out_until_sync(io):
                return
            if end is not None:
                host.died(io, end)
                return
            if monotonic_s() - max(began_s, io.heard_s) > host.settings.timeout_s:
                io.kill(f"it did not end its turn {command!r} within {host.settings.timeout_s:g} s (timeout_s)")
            host.wait()

    def _carry_out_until_sync(self, io: ChildIo[ChildOutput]) -> bool:
        outputs = io.take()
        for position, output in enumerate(outputs):
            if io.is_at_fault:
                return False
            if isinstance(output, ChildMessage) and output.command == "sync":
                io.put_back(outputs[position + 1 :])
                return True
            self._carry_out(output, io)
        return False

    def _carry_out(self, output: ChildOutput, io: ChildIo[ChildOutput]) -> None:
        if not isinstance(output, ChildMessage) or output.command not in ("emit", "end"):
            self._host.carry_out(output, io)
        elif output.command == "end":
            self.end()
        else:
            asked, ids = output.wants_task_ids, None
            try:
                ids = self.emit(
                    output.values if output.values is not None else [],
                    tup_id=None if output.id is None else (self._host.starts, output.id),
                    stream=output.stream or "default",
                    direct_task=output.task or None,
                    need_task_ids=asked,
                )
            except Exception as error:
                self.report_error(error)
            finally:
                if asked:
                    self._protocol.reply(io, self._host, ids)
