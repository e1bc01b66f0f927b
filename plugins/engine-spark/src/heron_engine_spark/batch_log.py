"""What each micro-batch left behind: where the sources are, and which files have the states. One record for each batch.

A batch is complete when its record is written. Everything before that may happen again: nothing of it is visible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec

from heron.errors import ConfigError
from heron_engine_spark.checkpoint_folder import CheckpointFolder
from heron_engine_spark.parcels import SlotVersion, packed, unpacked
from heron_engine_spark.spark_plan import SparkPlan
from heron_streamlet.plan.graph import Node
from heron_streamlet.plan.operators import Keyed, Windowed

__all__ = ["BatchLog", "BatchRecord", "Pipeline"]

_KEPT = 2  # Spark may plan the newest batch again
_PIPELINE = "pipeline.json"


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """The end of a batch; number 0 is the begin of the pipeline.

    Attributes:
        partitions: packed `PartitionState` by operator and name of the partition.
        versions: the states by operator and slot.
        rows: how many elements the batch read.
        ended: whether all partitions have ended, so that no other batch follows.
    """

    number: int = 0
    partitions: Mapping[tuple[str, str], bytes] = field(default_factory=dict)
    versions: Mapping[tuple[str, int], SlotVersion] = field(default_factory=dict)
    rows: int = 0
    ended: bool = False


class Pipeline(msgspec.Struct, frozen=True):
    """What must stay as it is while a checkpoint is used."""

    name: str
    slots: int
    groups: int
    states: dict[str, str]
    sources: list[str]


class BatchLog:
    """The records in a checkpoint folder."""

    def __init__(self, folder: CheckpointFolder) -> None:
        self.folder = folder

    def newest(self) -> BatchRecord:
        """The last complete batch."""
        numbers = self._numbers()
        return self.read(max(numbers)) if numbers else BatchRecord()

    def read(self, number: int) -> BatchRecord:
        """The record of a batch.

        Raises:
            OSError: when it does not exist.
        """
        if number == 0:
            return BatchRecord()
        record: BatchRecord = unpacked(self.folder.read(_name(number)))
        return record

    def write(self, record: BatchRecord) -> None:
        """Complete a batch; then remove records and states that no batch needs again."""
        self.folder.write(_name(record.number), packed(record))
        kept = [record.number - older for older in range(_KEPT)]
        for number in self._numbers():
            if number not in kept:
                self.folder.remove(_name(number))
        used = {name for each in kept for name in self._files(each)}
        for name in list(self.folder.names("state")):
            if name not in used and _batch_of(name) <= record.number:
                self.folder.remove(name)
        for name in list(self.folder.names("reads")):
            if _batch_of(name) <= record.number:
                self.folder.remove(name)

    def begin(self, plan: SparkPlan) -> SparkPlan:
        """Claim the checkpoint for the pipeline; return the plan with the number of slots that its state has.

        Raises:
            ConfigError: as `check` does.
        """
        former = self.check(plan)
        slots = plan.slots if former is None else former.slots
        self.folder.write(_PIPELINE, msgspec.json.encode(_described(plan, slots)))
        return replace(plan, slots=slots)

    def check(self, plan: SparkPlan) -> Pipeline | None:
        """Return the pipeline to which the checkpoint belongs; None for a new checkpoint.

        Raises:
            ConfigError: when it belongs to another pipeline, or an operator with state or a source was changed or
                removed, or a source has new partitions after all windows were closed; names the operator.
        """
        found = self.folder.find(_PIPELINE)
        if found is None:
            return None
        former = msgspec.json.decode(found, type=Pipeline)
        self._refuse(former, _described(plan, plan.slots))
        newest = self.newest()
        for each in plan.partitions if newest.ended else ():
            if (each.operator, each.name) not in newest.partitions:
                msg = (
                    f"engine.checkpoint: {self.folder.uri} has reached the end of all sources, and closed all windows; "
                    f"source {each.operator!r} has the new partition {each.name!r}; use a new folder"
                )
                raise ConfigError(msg)
        return former

    def _refuse(self, former: Pipeline, own: Pipeline) -> None:
        place = f"engine.checkpoint: {self.folder.uri}"
        if former.name != own.name:
            msg = f"{place} belongs to pipeline {former.name!r}, and this is {own.name!r}; give it a folder of its own"
            raise ConfigError(msg)
        if former.groups != own.groups:
            msg = f"{place}: topology.key.groups was {former.groups} and is {own.groups}; set it to {former.groups}"
            raise ConfigError(msg)
        for name, was in former.states.items():
            now = own.states.get(name)
            if now != was:
                change = "was removed" if now is None else f"was {was} and is {now}"
                msg = f"{place} has the state of operator {name!r}, which {change}; change it back, or use a new folder"
                raise ConfigError(msg)
        for name in former.sources:
            if name not in own.sources:
                msg = (
                    f"{place} has the positions of source {name!r}, which was removed; restore it, or use a new folder"
                )
                raise ConfigError(msg)

    def _numbers(self) -> list[int]:
        names = (name.rpartition("/")[2] for name in self.folder.names("batches"))
        return [int(name) for name in names if name.isdigit()]

    def _files(self, number: int) -> list[str]:
        try:
            return [name for version in self.read(number).versions.values() for name in version.files]
        except FileNotFoundError:
            return []


def _name(number: int) -> str:
    return f"batches/{number:08}"


def _batch_of(name: str) -> int:
    """The batch of a file of states, ``SLOT-OPERATOR-BATCH-RANDOM``, or of a read, ``BATCH-PARTITION``."""
    digits = name.rpartition("/")[2].split("-")[-2]
    return int(digits) if digits.isdigit() else 0


def _described(plan: SparkPlan, slots: int) -> Pipeline:
    sources = sorted({each.operator for each in plan.partitions})
    return Pipeline(plan.name, slots, plan.groups, {node.name: _words(node) for node in plan.keyed}, sources)


def _words(node: Node) -> str:
    """An operator with state in words: what it does, and in which windows."""
    operator = node.operator
    assert isinstance(operator, (Keyed, Windowed))  # noqa: S101  # the caller chose these
    window = getattr(operator.operator, "window", "")
    fold = getattr(operator.operator, "fold", None)
    words = (operator.kind, type(fold).__name__ if fold is not None else "", str(window))
    return " ".join(word for word in words if word)
