"""Specs: components as parts of a topology. Authors get them from `spec()` and name them as inputs of bolts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeAlias

from heron.api.api_constants import TOPOLOGY_COLUMNS
from heron.api.config import check_config
from heron.api.definition import (
    DEAD_LETTERS,
    DEFAULT_STREAM,
    ComponentDefinition,
    ComponentKind,
    GroupingKind,
    InputDefinition,
    StreamDefinition,
)
from heron.api.names import checked_name, entry_of, is_a, parsed_entry
from heron.api.stream import Grouping, Stream, merged_outputs
from heron.api.stream_id import ComponentSource, GlobalStreamId, InputSource
from heron.author_text import short_text
from heron.errors import ConfigError, TopologyError, known, nearest

__all__ = ["MOST_TASKS", "HeronComponentSpec", "Inputs"]

MOST_TASKS = 10_000
"""Tasks of a component; `heron.planner.verify` refuses more instances in a topology."""


class HeronComponentSpec(ComponentSource):
    """Name, class, number of tasks, inputs, outputs and configuration of a component.

    The constructor does not check inputs, outputs and configuration; `definition` does, when every spec has its name.

    Args:
        name: the name of the component, or None to take the name of the attribute in a `Topology` class.
        python_class_path: ``module.Class``, ``module:Class``, or ``Class`` for a class of the file that is run.
        is_spout: whether the class is a spout.
        par: the number of tasks, at least 1.
        inputs: as for `heron.api.BaseBolt.spec`.
        outputs: field names of the default stream, and `Stream` objects.
        config: the component's own configuration; see `heron.api.config`.

    Attributes:
        python_class_path: ``module.Class`` for a class that was given as an object, else as it was given.
        entry: ``module:Class``, as the definition names the class.
        component_class: the class that was given as an object, else None.

    Raises:
        TopologyError: when the name is not a string, the class path does not name a class, or `par` is not a positive
            int.
    """

    def __init__(
        self,
        name: str | None,
        python_class_path: str,
        is_spout: bool,
        par: int,
        inputs: Inputs | None = None,
        outputs: Sequence[str | Stream] | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        self.name = checked_name(name, "component") if name is not None else None
        place = f"component {short_text(name)}" if name is not None else f"component {python_class_path}"
        self.python_class_path = python_class_path
        self.entry = parsed_entry(python_class_path, place)
        self.is_spout = is_spout
        self.parallelism = _checked_par(par, place)
        self.inputs = inputs
        self.outputs = outputs
        self.custom_config = config
        self.component_class: type | None = None

    @classmethod
    def of_class(
        cls,
        component: type,
        name: str | None,
        is_spout: bool,
        par: int,
        inputs: Inputs | None,
        optional_outputs: Sequence[str | Stream] | None,
        config: Mapping[str, object] | None,
    ) -> HeronComponentSpec:
        """Return the spec of a class object. Its outputs are those of the class, then the optional ones.

        Raises:
            TopologyError: as the constructor; also when the class is defined inside a function, or the outputs are not
                a list or tuple.
        """
        place = f"component {short_text(name)}" if name is not None else f"component of {component.__qualname__}"
        own: Sequence[str | Stream] = getattr(component, "outputs", None) or ()
        for given in (own, optional_outputs or ()):
            if not is_a(given, list, tuple):  # a string would become one field for each letter
                msg = (
                    f"{place}: outputs {short_text(given, 60)} is not a list or tuple; give ['field', Stream(...), ...]"
                )
                raise TopologyError(msg)
        outputs = (*own, *(optional_outputs or ()))
        spec = cls(name, entry_of(component, place), is_spout, par, inputs, outputs, config)
        spec.component_class = component
        spec.python_class_path = f"{component.__module__}.{component.__qualname__}"
        return spec

    def get_out_streamids(self) -> set[str]:
        """Return the names of the declared output streams.

        Raises:
            TopologyError: when an output is neither a field name nor a `Stream`.
        """
        return {stream.name for stream in self.output_streams()}

    def output_streams(self) -> tuple[StreamDefinition, ...]:
        """Return the declared output streams as data.

        Raises:
            TopologyError: when an output is neither a field name nor a `Stream`, or a stream is declared twice.
        """
        return merged_outputs(self.outputs or (), self.place)

    def __getitem__(self, stream_id: str) -> GlobalStreamId:
        streams = self.get_out_streamids()
        if stream_id not in streams and not (self.is_spout and stream_id == DEAD_LETTERS):
            close = nearest(stream_id, streams)
            msg = f"{self.place}: no output stream {short_text(stream_id)}{close}; known: {known(streams)}"
            raise TopologyError(msg)
        return GlobalStreamId(self, stream_id)

    def __repr__(self) -> str:
        return f"HeronComponentSpec(name={self.name!r}, entry={self.entry!r}, par={self.parallelism!r})"

    @property
    def place(self) -> str:
        """The name of this component in errors."""
        return f"component {self.name!r}" if self.name is not None else f"component of {self.entry}"

    def groupings(self) -> dict[GlobalStreamId, Grouping]:
        """Return the inputs as ``{stream: grouping}``; an input from a list has the shuffle grouping.

        Raises:
            TopologyError: when an input or grouping has the wrong type, or a stream is named twice.
        """
        inputs = self.inputs
        if inputs is None:
            pairs: list[tuple[object, object]] = []
        elif isinstance(inputs, Mapping):
            pairs = list(inputs.items())
        elif isinstance(inputs, list | tuple):
            pairs = [(each, Grouping.SHUFFLE) for each in inputs]
        else:
            msg = f"{self.place}: inputs {short_text(inputs, 60)} is not a dict or list; give {{spec: grouping}}"
            raise TopologyError(msg)
        result: dict[GlobalStreamId, Grouping] = {}
        for source, grouping in pairs:
            key = self._input_key(source)
            if not isinstance(grouping, Grouping):
                msg = (
                    f"{self.place}: input {key}: {short_text(grouping, 60)} is not a grouping; give Grouping.SHUFFLE, "
                    "Grouping.fields('field') or another Grouping"
                )
                raise TopologyError(msg)
            if key in result:
                msg = f"{self.place}: the input {key} is given twice; give it once"
                raise TopologyError(msg)
            result[key] = grouping
        return result

    def definition(self) -> ComponentDefinition:
        """Return the component as data.

        Raises:
            TopologyError: when the spec has no name, an input or output has the wrong type, a spout has no output, a
                bolt has no input, or a consumer of a direct stream uses another grouping than DIRECT.
            ConfigError: as `heron.api.config.check_config`.
        """
        if self.name is None:
            msg = f"{self.place}: it has no name; give spec(name=...)"
            raise TopologyError(msg)
        outputs = self.output_streams()
        if self.custom_config is not None and not is_a(self.custom_config, Mapping):
            msg = f"{self.place}: config {short_text(self.custom_config, 60)} is not a dict; give {{'key': value}}"
            raise ConfigError(msg)
        if self.is_spout and not outputs:
            msg = f"{self.place}: a spout needs at least one output; set outputs = ['field'] in its class"
            raise TopologyError(msg)
        groupings = self.groupings()
        if not self.is_spout and not groupings:
            msg = f"{self.place}: a bolt needs at least one input; give inputs={{spec: grouping}}"
            raise TopologyError(msg)
        for source, grouping in groupings.items():
            self._check_direct(source, grouping)
        return ComponentDefinition(
            name=self.name,
            kind=ComponentKind.SPOUT if self.is_spout else ComponentKind.BOLT,
            entry=self.entry,
            parallelism=self.parallelism,
            outputs=outputs,
            inputs=tuple(
                InputDefinition(source.component_id, source.stream_id, grouping.definition)
                for source, grouping in groupings.items()
            ),
            config=check_config({**self.config_of_class(), **(self.custom_config or {})}, self.place, component=True),
        )

    def config_of_class(self) -> dict[str, object]:
        """Return the configuration that the class gives itself: whether it uses columns."""
        uses_columns = getattr(self.component_class, "uses_columns", None)
        return {TOPOLOGY_COLUMNS: True} if uses_columns is not None and uses_columns() else {}

    def get_protobuf(self) -> NoReturn:
        """Refuse: definitions are JSON here.

        Raises:
            TopologyError: always.
        """
        msg = f"{self.place}: get_protobuf is not supported, as definitions are JSON; use definition()"
        raise TopologyError(msg)

    def _input_key(self, source: object) -> GlobalStreamId:
        if isinstance(source, HeronComponentSpec):
            return GlobalStreamId(source, DEFAULT_STREAM)
        if isinstance(source, GlobalStreamId):
            return source
        msg = (
            f"{self.place}: the input {short_text(source, 60)} is neither a spec nor a "
            "GlobalStreamId; give the spec that "
            "add_spout, add_bolt or spec() returned, or spec['stream']"
        )
        raise TopologyError(msg)

    def _check_direct(self, source: GlobalStreamId, grouping: Grouping) -> None:
        if not isinstance(source.spec, HeronComponentSpec) or grouping.definition.kind is GroupingKind.DIRECT:
            return
        for output in source.spec.outputs or ():
            if isinstance(output, Stream) and output.direct and output.stream_id == source.stream_id:
                msg = (
                    f"{self.place}: input {source}: a direct stream is consumed with {grouping.definition.kind.value}; "
                    "use Grouping.DIRECT"
                )
                raise TopologyError(msg)


# The key type of a mapping is invariant, so {spec: ...} and {spec["stream"]: ...} are different types.
Inputs: TypeAlias = (
    Mapping[HeronComponentSpec, Grouping]
    | Mapping[GlobalStreamId, Grouping]
    | Mapping[InputSource, Grouping]
    | Sequence[InputSource]
)


def _checked_par(par: object, place: str) -> int:
    if not isinstance(par, int) or isinstance(par, bool) or not 1 <= par <= MOST_TASKS:
        msg = f"{place}: par is {short_text(par)}; give the number of tasks, an int of at least 1, at most {MOST_TASKS}"
        raise TopologyError(msg)
    return par
