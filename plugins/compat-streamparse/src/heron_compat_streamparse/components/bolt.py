"""Bolts that process one tuple at a time, and their specs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from heron_compat_streamparse.components.component import ROW_TYPES, Component
from heron_compat_streamparse.components.surface import own_protocol
from heron_compat_streamparse.hosting.author import BoltHost
from heron_compat_streamparse.hosting.hosted_bolt import HostedBolt
from heron_compat_streamparse.hosting.hosted_component import HOSTED
from heron_compat_streamparse.hosting.tuples import Tuple
from heron_compat_streamparse.specs.foreign import command_of, java_of
from heron_compat_streamparse.specs.spec import ComponentSpec, Inputs, Outputs, Par

__all__ = ["Bolt", "JavaBolt", "ShellBolt"]


class JavaBolt(Component):
    """A bolt in Java, which is refused when the topology class is made."""

    @classmethod
    def spec(  # noqa: PLR0913, PLR0917  # streamparse's signature
        cls,
        name: str | None = None,
        serialized_java: bytes | None = None,
        full_class_name: str | None = None,
        args_list: Sequence[object] | None = None,
        inputs: Inputs = None,
        par: Par = 1,
        config: Mapping[str, object] | None = None,
        outputs: Outputs | None = None,
    ) -> ComponentSpec:
        """Return this bolt as a part of a topology.

        Raises:
            TopologyError: when an argument has the wrong type or range.
        """
        spec = ComponentSpec(cls, name, is_spout=False, inputs=inputs, par=par, config=config, outputs=outputs)
        spec.foreign = java_of(full_class_name, serialized_java, spec.place)
        return spec


class ShellBolt(Component):
    """A bolt that is a command with Storm's multilang protocol."""

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        command: str | None = None,
        script: str | None = None,
        inputs: Inputs = None,
        par: Par | None = None,
        config: Mapping[str, object] | None = None,
        outputs: Outputs | None = None,
    ) -> ComponentSpec:
        """Return this bolt as a part of a topology.

        Raises:
            TopologyError: when an argument has the wrong type or range.
        """
        spec = ComponentSpec(cls, name, is_spout=False, inputs=inputs, par=par, config=config, outputs=outputs)
        spec.foreign = command_of(command, script, spec.place)
        return spec


class Bolt(Component):
    """A bolt: implement `process`, and declare the emitted fields in `outputs`.

    Attributes:
        auto_anchor: whether emits are anchored to the tuple that is processed.
        auto_ack: whether a tuple is acked after `process`.
        auto_fail: whether an exception in `process` fails the tuple.
    """

    auto_anchor: bool = True
    auto_ack: bool = True
    auto_fail: bool = True
    _current_tups: Sequence[Tuple] = ()

    _host: BoltHost
    _hosted: ClassVar[type[HostedBolt]]

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Give the class its `_hosted`."""
        super().__init_subclass__(**kwargs)
        namespace = {"author_class": cls, "__module__": cls.__module__, "__qualname__": f"{cls.__qualname__}.{HOSTED}"}
        setattr(cls, HOSTED, type(HOSTED, (HostedBolt,), namespace))

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        inputs: Inputs = None,
        par: Par | None = None,
        config: Mapping[str, object] | None = None,
    ) -> ComponentSpec:
        """Return this bolt as a part of a topology.

        Args:
            name: the name of the component; None takes the name of the attribute in a `Topology` class.
            inputs: ``{spec or spec["stream"]: grouping}``, or a list of specs and streams, or one spec.
            par: the number of tasks, or this number by environment; None takes that of the class.
            config: the component's own configuration; None takes that of the class.

        Raises:
            TopologyError: when an argument has the wrong type or range.
            ConfigError: when `config` is not a dict.
        """
        spec = ComponentSpec(cls, name, is_spout=False, inputs=inputs, par=par, config=config)
        spec.foreign = own_protocol(cls)
        return spec

    @staticmethod
    def is_tick(tup: Tuple) -> bool:
        """Whether a tuple is a tick."""
        return tup.component == "__system" and tup.stream == "__tick"

    def process(self, tup: Tuple) -> None:
        """Process a tuple."""
        raise NotImplementedError

    def process_tick(self, tup: Tuple) -> None:
        """Act on a tick, which comes every ``topology.tick.tuple.freq.secs`` seconds if this key is set."""

    def emit(
        self,
        tup: Sequence[object],
        stream: str | None = None,
        anchors: Iterable[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emit a tuple.

        Args:
            tup: the values, one for each declared field.
            stream: the name of a declared stream; None is the default stream.
            anchors: received tuples or their ids; None is the present tuple with `auto_anchor`, ``[]`` is none.
            direct_task: the id of the receiving task, for consumers that subscribe with ``Grouping.DIRECT``.
            need_task_ids: whether to return the ids of the receiving tasks.

        Raises:
            EmitError: when the values, the stream, the task or an anchor is wrong.
        """
        if not isinstance(tup, ROW_TYPES):
            self._refuse_values(tup)
        if anchors is None:
            anchors = self._current_tups if self.auto_anchor else ()
        return self._host.send(tup, stream or "default", anchors, direct_task, need_task_ids)

    def ack(self, tup: Tuple | str) -> None:
        """Declare that the bolt has finished with a tuple."""
        self._host.settle_ack(tup.id if isinstance(tup, Tuple) else tup)

    def fail(self, tup: Tuple | str) -> None:
        """Declare that the bolt could not process a tuple; its spout is informed."""
        self._host.settle_fail(tup.id if isinstance(tup, Tuple) else tup)

    def _take(self, tup: Tuple) -> None:
        """Process a tuple as pystorm's loop does."""
        self._current_tups = (tup,)
        self.process(tup)
        if self.auto_ack:
            self.ack(tup)
        self._current_tups = ()

    def _take_tick(self, tick: Tuple) -> None:
        self._current_tups = (tick,)
        self.process_tick(tick)
        self._current_tups = ()

    def _take_end(self) -> None:
        """Complete the work: no more tuples come."""

    def _batch_count(self) -> int:
        return 0

    def _take_failure(self) -> bool:
        """Fail what an exception of the last call concerns; return whether its tuple is still to be failed."""
        self._current_tups = ()
        return self.auto_fail
