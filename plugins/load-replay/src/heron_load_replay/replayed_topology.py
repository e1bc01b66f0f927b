"""A topology whose spouts are replaced by spouts that replay a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from heron.api.api_constants import (
    TOPOLOGY_MAX_SPOUT_PENDING,
    TOPOLOGY_RELIABILITY_MODE,
    TopologyReliabilityMode,
)
from heron.api.config import setting
from heron.api.definition import ComponentDefinition, ComponentKind, GroupingKind, TopologyDefinition
from heron.errors import UsageError, known
from heron_cli.launch.loading.loaded import LoadedTopology, LoadingTopology
from heron_cli.profiles.overrides import Overrides
from heron_load_replay.load_description import LoadDescription, SpoutLoad
from heron_load_replay.replay_order import ReplayOrder, order_config
from heron_load_replay.replay_result import TRACKING

__all__ = ["ReplayTerms", "ReplayedTopology", "replayed", "tracks_acks"]

_ENTRY = "heron_load_replay.replay_spout:ReplaySpout"
_SUFFIX = "-replay"


@dataclass(frozen=True, slots=True)
class ReplayTerms:
    """A file, a folder for the results of tasks, and the system: exactly one of the numbers is above 0.

    `speed` is a factor of the times of the file, `rate` is in tuples/s of all spouts together, `pending` is the number
    of incomplete trees of each spout task. `parallelism` has the tasks of bolts that differ from those of the topology.
    """

    file: Path
    results: Path
    speed: float = 0.0
    rate: float = 0.0
    pending: int = 0
    parallelism: Mapping[str, int] = field(default_factory=dict)

    def text(self) -> str:
        """Return the system for people."""
        if self.pending:
            return f"closed, {self.pending} pending"
        return f"open at {self.rate:g} tuples/s" if self.rate else f"open at {self.speed:g}x"


class ReplayedTopology(LoadingTopology):
    """A load in progress, whose result is the replayed topology with the settings of the command line."""

    definition: TopologyDefinition
    """The replayed topology; set when there is a result."""

    def __init__(
        self,
        target: str,
        argv: Sequence[str],
        terms: ReplayTerms,
        load: LoadDescription,
        overrides: Overrides,
        *,
        verbose: bool = False,
    ) -> None:
        self._terms = terms
        self._load = load
        self._overrides = overrides
        self.replaced: Callable[[TopologyDefinition], None] = lambda _: None
        """Called with the replayed topology before it starts."""
        super().__init__(target, argv, verbose=verbose)

    def result(self, cancelled: Callable[[], bool] = lambda: False) -> LoadedTopology:
        """Wait as `LoadingTopology.result`; then replace the spouts. Also raises as `replayed` does."""
        loaded = super().result(cancelled)
        self.definition = replayed(self._overrides.configured(loaded.definition), self._terms, self._load)
        self.replaced(self.definition)
        return replace(loaded, definition=self.definition)


def tracks_acks(definition: TopologyDefinition) -> bool:
    """Return whether an ack tells that a tree is complete; otherwise it only tells that its root was emitted."""
    return bool(setting(definition.config, TOPOLOGY_RELIABILITY_MODE) == TopologyReliabilityMode.ATLEAST_ONCE.value)


def replayed(definition: TopologyDefinition, terms: ReplayTerms, load: LoadDescription) -> TopologyDefinition:
    """Return the topology with other spouts and under another name.

    Raises:
        UsageError: when a closed system would wait for acks that the topology does not track, or the file has other
            spouts than the topology, other streams or numbers of fields, or a stream
            that a bolt receives directly.
    """
    if terms.pending and not tracks_acks(definition):
        msg = f"--closed: topology {definition.name!r} tracks no acks; if its bolts ack, give `--set {TRACKING}`"
        raise UsageError(msg)
    spouts = {each.name for each in definition.components if each.kind is ComponentKind.SPOUT}
    if spouts != set(load.spouts):
        msg = (
            f"{terms.file}: has the load of the spouts {known(load.spouts)}, and topology {definition.name!r} has "
            f"{known(spouts)}; capture a topology with the same spouts, or rename them"
        )
        raise UsageError(msg)
    return replace(
        definition,
        name=f"{definition.name}{_SUFFIX}",
        components=tuple(
            _replaced(definition, each, terms, load)
            if each.kind is ComponentKind.SPOUT
            else replace(each, parallelism=terms.parallelism.get(each.name, each.parallelism))
            for each in definition.components
        ),
    )


def _replaced(
    definition: TopologyDefinition, spout: ComponentDefinition, terms: ReplayTerms, load: LoadDescription
) -> ComponentDefinition:
    own = load.spouts[spout.name]
    _check_streams(definition, spout, own, terms.file)
    rate = terms.rate * sum(own.tuples) / load.tuples if load.tuples else 0.0
    order = ReplayOrder(str(terms.file), str(terms.results), own.tuples, terms.speed, rate, load.seconds)
    pending = {TOPOLOGY_MAX_SPOUT_PENDING: terms.pending} if terms.pending else {}
    return replace(spout, entry=_ENTRY, config=spout.config | pending | order_config(order))


def _check_streams(definition: TopologyDefinition, spout: ComponentDefinition, load: SpoutLoad, file: Path) -> None:
    for name, fields in load.streams.items():
        output = spout.output(name)
        if output is None or len(output.fields) != len(fields):
            there = f"{known(output.fields)}" if output else f"no stream {name!r}"
            msg = (
                f"{file}: spout {spout.name!r} emits {known(fields)} on stream {name!r}, and that of topology "
                f"{definition.name!r} has {there}; declare the captured fields"
            )
            raise UsageError(msg)
        kinds = {each.grouping.kind for _, each in definition.consumers(spout.name, name)}
        if GroupingKind.DIRECT in kinds:
            msg = f"stream {name!r} of spout {spout.name!r} is received directly: a capture does not have the tasks"
            raise UsageError(msg)
