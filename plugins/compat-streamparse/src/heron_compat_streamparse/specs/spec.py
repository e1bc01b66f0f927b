"""Specs: components as parts of a topology, checked when they are made, as in streamparse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from heron.api.component_spec import MOST_TASKS, HeronComponentSpec
from heron.api.definition import DEFAULT_STREAM
from heron.api.names import is_a
from heron.api.stream_id import GlobalStreamId as HeronStreamId
from heron.author_text import short_text
from heron.errors import ConfigError, TopologyError, known
from heron_compat_streamparse.specs.foreign import ForeignRuntime
from heron_compat_streamparse.specs.stream import GlobalStreamId, Grouping, Stream

__all__ = ["ComponentSpec", "Inputs", "Outputs", "Par"]

Outputs: TypeAlias = Sequence[str | Stream]
Par: TypeAlias = int | Mapping[str, int]


class ComponentSpec(HeronComponentSpec):
    """A component: its class, name, number of tasks, inputs, outputs and configuration.

    Attributes:
        component_cls: the author's class.
        par: the number of tasks, or this number by environment.
        config: the component's own configuration, with Storm's keys.
        foreign: what runs the component if the instance itself cannot; else None.

    Raises:
        TopologyError: when an argument has the wrong type or range.
        ConfigError: when the configuration is not a dict.
    """

    def __init__(
        self,
        component_cls: type,
        name: str | None = None,
        *,
        is_spout: bool,
        inputs: Inputs = None,
        par: Par | None = None,
        config: Mapping[str, object] | None = None,
        outputs: Outputs | None = None,
    ) -> None:
        super().__init__(name, f"{component_cls.__module__}.{component_cls.__name__}", is_spout, 1)
        self.component_cls = component_cls
        self.foreign: ForeignRuntime | None = None
        self.par = _checked_par(getattr(component_cls, "par", 1) if par is None else par, self.place)
        self.config = _checked_config(getattr(component_cls, "config", None) if config is None else config, self.place)
        self.outputs = getattr(component_cls, "outputs", None) if outputs is None else outputs
        self.output_streams()  # checks them
        self.inputs = self._with_groupings(inputs)

    @property
    def place(self) -> str:
        """The name of this component in errors; before it has one, its class."""
        shown = getattr(self, "component_cls", None)
        return f"component {self.name!r}" if self.name or shown is None else f"component of {shown.__qualname__}"

    def tasks(self, environment: str) -> int:
        """Return the number of tasks in an environment.

        Raises:
            TopologyError: when `par` is by environment and has none for this one.
        """
        if isinstance(self.par, int):
            return self.par
        if environment not in self.par:
            shown = f"the environment {environment!r}" if environment else "a topology without config.json"
            msg = f"{self.place}: par has no number of tasks for {shown}; it has {known(self.par)}"
            raise TopologyError(msg)
        return self.par[environment]

    def is_direct(self, stream: str) -> bool:
        """Whether a stream is declared as direct."""
        return any(isinstance(each, Stream) and each.direct and each.stream_id == stream for each in self.outputs or ())

    def __getitem__(self, stream: str) -> GlobalStreamId:
        super().__getitem__(stream)  # refuses a stream that is not declared
        return GlobalStreamId(self, stream)

    def __repr__(self) -> str:
        kind = "Spout" if self.is_spout else "Bolt"
        return f"{kind}Spec({self.component_cls.__qualname__}, name={self.name!r}, par={self.par!r})"

    def _with_groupings(self, inputs: Inputs) -> dict[HeronStreamId, Grouping]:
        if inputs is None:
            return {}
        if isinstance(inputs, ComponentSpec):
            inputs = [inputs]
        if isinstance(inputs, list | tuple):
            pairs: list[tuple[object, object]] = [(each, _default_grouping(each)) for each in inputs]
        elif isinstance(inputs, Mapping):
            pairs = list(inputs.items())
        else:
            msg = f"{self.place}: inputs {short_text(inputs, 60)} is not a list, dict or spec; give {{spec: grouping}}"
            raise TopologyError(msg)
        found: dict[HeronStreamId, Grouping] = {}
        for source, grouping in pairs:
            key = self._input_key(source)
            if not isinstance(grouping, Grouping):
                msg = (
                    f"{self.place}: input {key}: {short_text(grouping, 60)} is not a grouping; give Grouping.SHUFFLE, "
                    "Grouping.fields('field') or another Grouping"
                )
                raise TopologyError(msg)
            found[key] = grouping
        return found


Inputs: TypeAlias = (
    Mapping[ComponentSpec, Grouping]
    | Mapping[GlobalStreamId, Grouping]
    | Mapping[ComponentSpec | GlobalStreamId, Grouping]
    | Sequence[ComponentSpec | GlobalStreamId]
    | ComponentSpec
    | None
)


def _default_grouping(source: object) -> Grouping:
    if isinstance(source, HeronStreamId):
        return _default_grouping_of(source.spec, source.stream_id)
    return _default_grouping_of(source, DEFAULT_STREAM)


def _default_grouping_of(producer: object, stream: str) -> Grouping:
    direct = isinstance(producer, ComponentSpec) and producer.is_direct(stream)
    return Grouping.DIRECT if direct else Grouping.SHUFFLE


def _checked_par(par: object, place: str) -> Par:
    if isinstance(par, Mapping) and par:
        checked: dict[str, int] = {}
        for environment, tasks in par.items():
            if not isinstance(environment, str):
                msg = f"{place}: par has the key {short_text(environment)}; give {{'environment': tasks}}"
                raise TopologyError(msg)
            checked[environment] = _checked_tasks(tasks, f"{place}: par of {environment!r}")
        return checked
    return _checked_tasks(par, f"{place}: par")


def _checked_tasks(tasks: object, place: str) -> int:
    if not isinstance(tasks, int) or isinstance(tasks, bool) or not 1 <= tasks <= MOST_TASKS:
        msg = f"{place}: {short_text(tasks)} is not a number of tasks; give an int of 1 to {MOST_TASKS}"
        raise TopologyError(msg)
    return tasks


def _checked_config(config: object, place: str) -> Mapping[str, object]:
    if config is None:
        return {}
    if not isinstance(config, dict) or not all(is_a(each, str) for each in config):
        msg = f"{place}: config {short_text(config, 60)} is not a dict with text as keys; give {{'key': value}}"
        raise ConfigError(msg)
    return config
