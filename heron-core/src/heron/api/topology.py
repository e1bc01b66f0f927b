"""Topologies: built step by step with `TopologyBuilder`, or written as a class derived from `Topology`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from heron.api.api_constants import TOPOLOGY_NAME
from heron.api.bolt import BaseBolt, Bolt
from heron.api.capture import add_to_capture
from heron.api.component_spec import HeronComponentSpec, Inputs
from heron.api.config import check_config
from heron.api.dead_letter import with_dead_letters
from heron.api.definition import DEAD_LETTERS, TopologyDefinition
from heron.api.names import checked_name, is_a
from heron.api.spout import BaseSpout, Spout
from heron.api.stream import ICustomGrouping, Stream
from heron.api.window_bolt import WindowBolt
from heron.author_text import short_text
from heron.errors import ConfigError, TopologyError

__all__ = ["Topology", "TopologyBuilder", "TopologyType"]

_RESERVED_NAME = "config"  # an attribute of every Topology class

_OWN_METHODS: tuple[tuple[type, type, str], ...] = (
    # (kind of component, the class whose method does nothing, the method that its author must write)
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

    Args:
        name: the name of the topology, without slash and dot; not ``Topology``.

    Raises:
        TopologyError: when the name is not a string, is empty, or breaks these rules.
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
        """Add components.

        Raises:
            TopologyError: when an argument is not a spec, or a name is missing, reserved or taken.
        """
        for spec in specs:
            if not is_a(spec, HeronComponentSpec):
                msg = (
                    f"{self._place}: {short_text(spec, 60)} is not a spec; give the result of "
                    "Spout.spec() or Bolt.spec()"
                )
                raise TopologyError(msg)
            if spec.name is None:
                msg = f"{self._place}, {spec.place}: it has no name; give spec(name=...)"
                raise TopologyError(msg)
            _check_name(spec.name, f"{self._place}, component")
            if spec.name == _RESERVED_NAME:
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
        """Add a spout with `par` tasks. Return its spec, which bolts name as an input.

        Raises:
            TopologyError: when the class is not a spout; otherwise as `BaseSpout.spec` and `add_spec`.
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
        """Add a bolt with `par` tasks. Return its spec, which other bolts name as an input.

        Raises:
            TopologyError: when the class is not a bolt; otherwise as `BaseBolt.spec` and `add_spec`.
        """
        self._check_class(name, bolt_cls, BaseBolt, "bolt")
        spec = bolt_cls.spec(name=name, inputs=inputs, par=par, config=config, optional_outputs=optional_outputs)
        self.add_spec(spec)
        return spec

    def set_config(self, config: Mapping[str, object]) -> None:
        """Set the configuration of the topology; it replaces an earlier one.

        Raises:
            ConfigError: as `heron.api.config.check_config`.
        """
        check_config(config, self._place)
        self._config = config

    def build(self) -> TopologyDefinition:
        """Return the topology as data. Submitting it also verifies the graph as a whole.

        Raises:
            TopologyError: when there is no spout, or a component does not define its method; otherwise as
                `HeronComponentSpec.definition`.
            ConfigError: as `heron.api.config.check_config`, or when the configuration sets another name.
        """
        if not any(spec.is_spout for spec in self._specs.values()):
            msg = f"{self._place}: there is no spout; add one with add_spout"
            raise TopologyError(msg)
        for spec in self._specs.values():
            self._check_methods(spec)
        config = check_config(self._config, self._place)
        named = config.pop(TOPOLOGY_NAME, self.topology_name)
        if named != self.topology_name:
            msg = (
                f"{self._place}: {TOPOLOGY_NAME} is {short_text(named)}; remove the key, as the builder "
                "or class gives the name"
            )
            raise ConfigError(msg)
        components = [spec.definition() for spec in self._specs.values()]
        read = {each.component for bolt in components for each in bolt.inputs if each.stream == DEAD_LETTERS}
        return TopologyDefinition(
            name=self.topology_name,
            components=tuple(with_dead_letters(each) if each.name in read else each for each in components),
            config=config,
        )

    def definition(self) -> TopologyDefinition:
        """The same as `build`."""
        return self.build()

    def live_grouping(self, component: str, input_component: str, stream: str) -> ICustomGrouping:
        """Return the object that was given to ``Grouping.custom`` for this input of `component`.

        Raises:
            TopologyError: when the input has no such object.
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
        """Submit the topology to the `heron` command that runs this file.

        Raises:
            TopologyError: as `build`.
            ConfigError: as `build`.
            UsageError: when Python itself runs the file.
        """
        self.build()  # raises here, so that the traceback shows the author's line
        add_to_capture(self)

    @property
    def _place(self) -> str:
        return f"topology {self.topology_name!r}"

    def _check_class(self, name: object, cls: object, base: type, kind: str) -> None:
        if not isinstance(cls, type) or not issubclass(cls, base):
            msg = (
                f"{self._place}, component {short_text(name)}: {short_text(cls)} is not a {kind}; give a class derived "
                f"from {kind.capitalize()}"
            )
            raise TopologyError(msg)

    def _check_methods(self, spec: HeronComponentSpec) -> None:
        cls = spec.component_class
        if cls is None:  # given by name; only an instance imports it
            return
        empty, method = next((empty, method) for kind, empty, method in _OWN_METHODS if issubclass(cls, kind))
        own = getattr(cls, method, None)
        in_columns = issubclass(cls, Bolt) and cls.receives_columns()
        if not in_columns and (own is None or own is getattr(empty, method)):
            where = f"{cls.__qualname__} of {cls.__module__}"
            msg = f"{self._place}, {spec.place}: {where} does not define {method}; define it"
            raise TopologyError(msg)


class TopologyType(type):
    """Gives a spec without a name the name of its attribute. `Topology.definition` checks the rest."""

    def __new__(mcs, classname: str, bases: tuple[type, ...], class_dict: dict[str, object]) -> TopologyType:
        """Return the class, after naming its specs."""
        class_dict.setdefault("topology_name", classname)
        for name, spec in class_dict.items():
            if isinstance(spec, HeronComponentSpec) and spec.name is None:
                spec.name = name
        return super().__new__(mcs, classname, bases, class_dict)


class Topology(metaclass=TopologyType):
    """A topology as a class. Its attributes are specs, and `config` is its configuration.

        class Words(Topology):
            config = {"topology.stmgrs": 2}
            lines = LineSpout.spec(par=1)
            count = CountBolt.spec(par=2, inputs={lines: Grouping.fields("word")})

    The topology has the name of the class, unless the class sets `topology_name`. It includes the specs of its base
    classes. ``heron run FILE`` finds the class; no call is necessary.
    """

    config: ClassVar[Mapping[str, object]] = {}
    topology_name: ClassVar[str]

    @classmethod
    def definition(cls) -> TopologyDefinition:
        """Return the topology as data.

        Raises:
            TopologyError: when the class is `Topology` itself; otherwise as `TopologyBuilder.build`.
            ConfigError: as `TopologyBuilder.build`.
        """
        return cls._builder().build()

    @classmethod
    def live_grouping(cls, component: str, input_component: str, stream: str) -> ICustomGrouping:
        """Return the object that was given to ``Grouping.custom`` for this input of `component`.

        Raises:
            TopologyError: when the input has no such object.
        """
        return cls._builder().live_grouping(component, input_component, stream)

    @classmethod
    def write(cls) -> None:
        """Submit the topology to the `heron` command that runs this file. A file with one topology needs no call.

        Raises:
            TopologyError: as `definition`.
            ConfigError: as `definition`.
            UsageError: when Python itself runs the file.
        """
        cls.definition()
        add_to_capture(cls)

    @classmethod
    def _builder(cls) -> TopologyBuilder:
        if cls is Topology:
            msg = "class Topology: it is the base of topologies and has no components; derive from it"
            raise TopologyError(msg)
        builder = TopologyBuilder(cls.topology_name)
        attributes: dict[str, object] = {}
        for base in reversed(cls.__mro__):
            attributes.update(vars(base))
        if isinstance(attributes["config"], HeronComponentSpec):
            msg = f"class {cls.__name__}: 'config' is reserved for the configuration; rename the component"
            raise TopologyError(msg)
        builder.add_spec(*(each for each in attributes.values() if isinstance(each, HeronComponentSpec)))
        builder.set_config(cls.config)
        return builder


def _check_name(name: object, place: str) -> None:
    if {"/", "."} & set(checked_name(name, place)):
        msg = f"{place} {short_text(name)}: a name has no slash and no dot, as it becomes part of paths; rename it"
        raise TopologyError(msg)
