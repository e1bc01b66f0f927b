"""Puts components together into a topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heron.api.api_constants import TOPOLOGY_NAME
from heron.api.author_name import checked_name, is_a
from heron.api.bolt import BaseBolt, Bolt
from heron.api.capture import hand_in
from heron.api.component_spec import HeronComponentSpec, Inputs
from heron.api.config import check_config
from heron.api.custom_grouping import ICustomGrouping
from heron.api.definition import TopologyDefinition
from heron.api.spout import BaseSpout, Spout
from heron.api.stream import Stream
from heron.api.window_bolt import WindowBolt
from heron.errors import ConfigError, TopologyError

__all__ = ["TopologyBuilder"]

_RESERVED_NAMES = ("config",)
_RESERVED_PREFIX = "__"

_OWN_METHODS: tuple[tuple[type, type, str], ...] = (
    # (kind of component, the class whose method does nothing, the method its author has to write)
    (BaseSpout, Spout, "next_tuple"),
    (WindowBolt, WindowBolt, "processWindow"),
    (BaseBolt, Bolt, "process"),
)


class TopologyBuilder:
    """Collects components, their connections and the configuration of one topology.

        builder = TopologyBuilder("words")
        lines = builder.add_spout("lines", LineSpout, par=1)
        builder.add_bolt("count", CountBolt, par=2, inputs={lines: Grouping.fields("word")})
        builder.build_and_submit()

    Raises:
        TopologyError: when the name is not acceptable.
    """

    def __init__(self, name: str) -> None:
        _check_name(name, "topology")
        if name == "Topology":
            msg = "topology 'Topology': this name is reserved; choose another"
            raise TopologyError(msg)
        self.topology_name: str = name
        self._specs: dict[str, HeronComponentSpec] = {}
        self._config: Mapping[str, object] = {}

    def add_spec(self, *specs: HeronComponentSpec) -> None:
        """Adds components.

        Raises:
            TopologyError: when one is no spec, has no name, a reserved name, or the name of another.
        """
        for spec in specs:
            if not is_a(spec, HeronComponentSpec):
                msg = f"{self._place}: {spec!r:.60} is no spec; give what Spout.spec() or Bolt.spec() returns"
                raise TopologyError(msg)
            if spec.name is None:
                msg = f"{self._place}, {spec.place}: it has no name; give spec(name=...)"
                raise TopologyError(msg)
            _check_name(spec.name, f"{self._place}, component")
            if spec.name in _RESERVED_NAMES or spec.name.startswith(_RESERVED_PREFIX):
                msg = f"{self._place}, {spec.place}: this name is reserved; choose another"
                raise TopologyError(msg)
            if spec.name in self._specs:
                msg = f"{self._place}, {spec.place}: there are two components of this name; rename one"
                raise TopologyError(msg)
            self._specs[spec.name] = spec

    def add_spout(
        self,
        name: str,
        spout_cls: type[BaseSpout],
        par: int,
        config: Mapping[str, object] | None = None,
        optional_outputs: Sequence[str | Stream] | None = None,
    ) -> HeronComponentSpec:
        """Adds a spout with `par` tasks and returns its spec, to be named as an input.

        Raises:
            TopologyError: when the class is no spout, or an argument is not acceptable.
        """
        self._check_class(name, spout_cls, BaseSpout, "spout")
        spec = spout_cls.spec(name=name, par=par, config=config, optional_outputs=optional_outputs)
        self.add_spec(spec)
        return spec

    def add_bolt(
        self,
        name: str,
        bolt_cls: type[BaseBolt],
        par: int,
        inputs: Inputs | None,
        config: Mapping[str, object] | None = None,
        optional_outputs: Sequence[str | Stream] | None = None,
    ) -> HeronComponentSpec:
        """Adds a bolt with `par` tasks and returns its spec, to be named as an input.

        Raises:
            TopologyError: when the class is no bolt, or an argument is not acceptable.
        """
        self._check_class(name, bolt_cls, BaseBolt, "bolt")
        spec = bolt_cls.spec(name=name, inputs=inputs, par=par, config=config, optional_outputs=optional_outputs)
        self.add_spec(spec)
        return spec

    def set_config(self, config: Mapping[str, object]) -> None:
        """Sets the topology's configuration, in place of any that was set before.

        Raises:
            ConfigError: when it is not acceptable.
        """
        check_config(config, self._place)
        self._config = config

    def build(self) -> TopologyDefinition:
        """The topology as neutral data; what only the whole graph shows is verified by the planner.

        Raises:
            TopologyError: when there is no spout, or a component is not acceptable.
            ConfigError: when a configuration is not acceptable.
        """
        if not any(spec.is_spout for spec in self._specs.values()):
            msg = f"{self._place}: there is no spout; add one with add_spout"
            raise TopologyError(msg)
        for spec in self._specs.values():
            self._check_methods(spec)
        config = check_config(self._config, self._place)
        named = config.pop(TOPOLOGY_NAME, self.topology_name)
        if named != self.topology_name:
            msg = f"{self._place}: {TOPOLOGY_NAME} is {named!r}; remove the key, the name is given already"
            raise ConfigError(msg)
        return TopologyDefinition(
            name=self.topology_name,
            components=tuple(spec.definition() for spec in self._specs.values()),
            config=config,
        )

    def definition(self) -> TopologyDefinition:
        """As `build`."""
        return self.build()

    def live_grouping(self, component: str, input_component: str, stream: str) -> ICustomGrouping:
        """The object that was given to ``Grouping.custom`` for this input of `component`.

        Raises:
            TopologyError: when there is none.
        """
        spec = self._specs.get(component)
        for source, grouping in spec.groupings().items() if spec else ():
            if (source.component_id, source.stream_id) == (
                input_component,
                stream,
            ) and grouping.live is not None:
                return grouping.live
        msg = (
            f"{self._place}, component {component!r}: the input {input_component}:{stream} has no grouping object; the "
            "file builds another topology now than when it was started"
        )
        raise TopologyError(msg)

    def build_and_submit(self) -> None:
        """Hands the topology to the `heron` command that runs this file.

        Raises:
            TopologyError: as `build`.
            ConfigError: as `build`.
            UsageError: when the file is run by Python itself.
        """
        self.build()  # here, so that the error's traceback names the author's line
        hand_in(self)

    @property
    def _place(self) -> str:
        return f"topology {self.topology_name!r}"

    def _check_class(self, name: object, cls: object, base: type, kind: str) -> None:
        if not isinstance(cls, type) or not issubclass(cls, base):
            msg = (
                f"{self._place}, component {name!r}: {cls!r:.80} is no {kind}; give a class derived from "
                f"{kind.capitalize()}"
            )
            raise TopologyError(msg)

    def _check_methods(self, spec: HeronComponentSpec) -> None:
        cls = spec.component_class
        if cls is None:  # named by a string: the instance will see
            return
        empty, method = next((empty, method) for kind, empty, method in _OWN_METHODS if issubclass(cls, kind))
        own = getattr(cls, method, None)
        if own is None or own is getattr(empty, method):
            where = f"{cls.__qualname__} of {cls.__module__}"
            msg = f"{self._place}, {spec.place}: {where} does not define {method}; define it"
            raise TopologyError(msg)


def _check_name(name: object, place: str) -> None:
    if {"/", "."} & set(checked_name(name, place)):
        msg = f"{place} {name!r}: a name has no slash and no dot, as it becomes part of paths; rename it"
        raise TopologyError(msg)
