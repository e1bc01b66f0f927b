"""Spouts, those that replay what failed, and their specs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar

from heron.errors import EmitError
from heron_compat_streamparse.components.component import ROW_TYPES, Component
from heron_compat_streamparse.components.surface import own_protocol
from heron_compat_streamparse.hosting.author import SpoutHost
from heron_compat_streamparse.hosting.emitted_values import emitted_values
from heron_compat_streamparse.hosting.hosted_component import HOSTED
from heron_compat_streamparse.hosting.hosted_spout import HostedSpout
from heron_compat_streamparse.specs.foreign import command_of, java_of
from heron_compat_streamparse.specs.spec import ComponentSpec, Outputs, Par

__all__ = ["JavaSpout", "ReliableSpout", "ShellSpout", "Spout"]


class JavaSpout(Component):
    """A spout in Java, which is refused when the topology class is made."""

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        serialized_java: bytes | None = None,
        full_class_name: str | None = None,
        args_list: Sequence[object] | None = None,
        par: Par = 1,
        config: Mapping[str, object] | None = None,
        outputs: Outputs | None = None,
    ) -> ComponentSpec:
        """Return this spout as a part of a topology.

        Raises:
            TopologyError: when an argument has the wrong type or range.
        """
        spec = ComponentSpec(cls, name, is_spout=True, par=par, config=config, outputs=outputs)
        spec.foreign = java_of(full_class_name, serialized_java, spec.place)
        return spec


class ShellSpout(Component):
    """A spout that is a command with Storm's multilang protocol."""

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        command: str | None = None,
        script: str | None = None,
        par: Par | None = None,
        config: Mapping[str, object] | None = None,
        outputs: Outputs | None = None,
    ) -> ComponentSpec:
        """Return this spout as a part of a topology.

        Raises:
            TopologyError: when an argument has the wrong type or range.
        """
        spec = ComponentSpec(cls, name, is_spout=True, par=par, config=config, outputs=outputs)
        spec.foreign = command_of(command, script, spec.place)
        return spec


class Spout(Component):
    """A spout: implement `next_tuple`, and declare the emitted fields in `outputs`."""

    _host: SpoutHost
    _hosted: ClassVar[type[HostedSpout]]

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Give the class its `_hosted`."""
        super().__init_subclass__(**kwargs)
        namespace = {"author_class": cls, "__module__": cls.__module__, "__qualname__": f"{cls.__qualname__}.{HOSTED}"}
        setattr(cls, HOSTED, type(HOSTED, (HostedSpout,), namespace))

    @classmethod
    def spec(
        cls, name: str | None = None, par: Par | None = None, config: Mapping[str, object] | None = None
    ) -> ComponentSpec:
        """Return this spout as a part of a topology; see `Bolt.spec`.

        Raises:
            TopologyError: when an argument has the wrong type or range.
            ConfigError: when `config` is not a dict.
        """
        spec = ComponentSpec(cls, name, is_spout=True, par=par, config=config)
        spec.foreign = own_protocol(cls)
        return spec

    def next_tuple(self) -> None:
        """Emit the next tuple or tuples, or return without an emit."""
        raise NotImplementedError

    def ack(self, tup_id: object) -> None:
        """Receive the id of a tuple whose tree is complete."""

    def fail(self, tup_id: object) -> None:
        """Receive the id of a tuple whose tree failed or timed out."""

    def activate(self) -> None:
        """Resume after a pause of the topology."""

    def deactivate(self) -> None:
        """Pause."""

    def emit(
        self,
        tup: Sequence[object],
        tup_id: object = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emit a tuple.

        Args:
            tup: the values, one for each declared field.
            tup_id: the argument of `ack` or `fail`; None asks for neither.
            stream: the name of a declared stream; None is the default stream.
            direct_task: the id of the receiving task, for consumers that subscribe with ``Grouping.DIRECT``.
            need_task_ids: whether to return the ids of the receiving tasks.

        Raises:
            EmitError: when the values, the stream or the task is wrong.
        """
        if not isinstance(tup, ROW_TYPES):
            self._refuse_values(tup)
        return self._host.emit(emitted_values(tup), tup_id, stream or "default", direct_task, need_task_ids)


class ReliableSpout(Spout):
    """A spout that keeps its tuples until their acks, and emits a failed one again up to `max_fails` times."""

    max_fails: int = 3

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.failed_tuples: Counter[object] = Counter()
        self.unacked_tuples: dict[object, tuple[Sequence[object], str | None, int | None, bool]] = {}

    def ack(self, tup_id: object) -> None:
        """Forget a tuple."""
        self.failed_tuples.pop(tup_id, None)
        if self.unacked_tuples.pop(tup_id, None) is None:
            self.logger.error("Received ack for unknown tuple ID: %r", tup_id)

    def fail(self, tup_id: object) -> None:
        """Emit a tuple again, or forget it when it has failed too often."""
        kept = self.unacked_tuples.get(tup_id)
        if kept is None:
            self.logger.error("Received fail for unknown tuple ID: %r", tup_id)
            return
        if self.failed_tuples[tup_id] < self.max_fails:
            tup, stream, direct_task, need_task_ids = kept
            self.emit(tup, tup_id=tup_id, stream=stream, direct_task=direct_task, need_task_ids=need_task_ids)
            self.failed_tuples[tup_id] += 1
        else:
            self.logger.info("Acking tuple ID %r after it exceeded retry limit (%r)", tup_id, self.max_fails)
            self.ack(tup_id)

    def emit(
        self,
        tup: Sequence[object],
        tup_id: object = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emit a tuple and keep it; see `Spout.emit`.

        Raises:
            EmitError: when there is no `tup_id`; otherwise as `Spout.emit`.
        """
        if tup_id is None:
            msg = "emit of a ReliableSpout without an id; give tup_id, so that the tuple can be replayed"
            raise EmitError(msg)
        self.unacked_tuples[tup_id] = (tup, stream, direct_task, need_task_ids)
        return super().emit(tup, tup_id, stream, direct_task, need_task_ids)
