"""A topology written as a class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from heron.api.builder import TopologyBuilder
from heron.api.capture import hand_in
from heron.api.component_spec import HeronComponentSpec
from heron.api.custom_grouping import ICustomGrouping
from heron.api.definition import TopologyDefinition
from heron.errors import TopologyError

__all__ = ["Topology", "TopologyType"]


class TopologyType(type):
    """Gives the specs of a class body their attribute's name; what they add up to is checked by `definition`."""

    def __new__(mcs, classname: str, bases: tuple[type, ...], class_dict: dict[str, object]) -> TopologyType:
        """The class; specs without a name are named."""
        class_dict.setdefault("topology_name", classname)
        for name, spec in class_dict.items():
            if isinstance(spec, HeronComponentSpec) and spec.name is None:
                spec.name = name
        return super().__new__(mcs, classname, bases, class_dict)


class Topology(metaclass=TopologyType):
    """A topology as a class: its attributes are specs, `config` is its configuration, its name is the
    topology's unless `topology_name` is set.

        class Words(Topology):
            config = {"topology.stmgrs": 2}
            lines = LineSpout.spec(par=1)
            count = CountBolt.spec(par=2, inputs={lines: Grouping.fields("word")})

    ``heron run FILE`` finds the class by itself. Specs of base classes belong to it too.
    """

    config: ClassVar[Mapping[str, object]] = {}
    topology_name: ClassVar[str]

    @classmethod
    def definition(cls) -> TopologyDefinition:
        """The topology as neutral data.

        Raises:
            TopologyError: when the class is `Topology` itself, has no spout, or a component is not
                acceptable.
            ConfigError: when a configuration is not acceptable.
        """
        return cls._builder().build()

    @classmethod
    def live_grouping(cls, component: str, input_component: str, stream: str) -> ICustomGrouping:
        """The object that was given to ``Grouping.custom`` for this input of `component`.

        Raises:
            TopologyError: when there is none.
        """
        return cls._builder().live_grouping(component, input_component, stream)

    @classmethod
    def write(cls) -> None:
        """Hands the topology to the `heron` command that runs this file; only needed where several are
        defined.

        Raises:
            TopologyError: as `definition`.
            ConfigError: as `definition`.
            UsageError: when the file is run by Python itself.
        """
        cls.definition()
        hand_in(cls)

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
