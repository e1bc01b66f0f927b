"""Collectors that record each call, and the context of a single task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pytest

from heron.api import (
    BoltCollector,
    GlobalStreamId,
    IMetric,
    ITaskHook,
    PlainBatch,
    SpoutCollector,
    ThreadsafeCollector,
    TopologyContext,
    Tuple,
)
from heron.api.columns import Columns
from heron.api.context import S
from heron.api.definition import GroupingDefinition, TopologyDefinition

Calls: TypeAlias = list[tuple[object, ...]]


@dataclass
class RecordingSpoutCollector:
    """A spout collector that records calls; every emit reaches tasks 7 and 8."""

    calls: Calls

    def emit(
        self,
        values: Sequence[object],
        tup_id: object = None,
        stream: str = "default",
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        self.calls.append(("emit", values, tup_id, stream, direct_task, need_task_ids))
        return [7, 8] if need_task_ids else None

    def emit_columns(
        self,
        batch: Columns,
        tup_id: object = None,
        stream: str = "default",
        direct_task: int | None = None,
        ids: Sequence[object] | None = None,
    ) -> None:
        self.calls.append(("emit_columns", batch, tup_id, stream, direct_task, ids))

    def emit_plain(
        self, payload: bytes, rows: int, stream: str = "default", ids: Sequence[object] | None = None
    ) -> Sequence[tuple[object, ...]]:
        self.calls.append(("emit_plain", payload, rows, stream, ids))
        return ()

    def emit_watermark(self, time_s: float, idle: bool = False) -> None:
        self.calls.append(("emit_watermark", time_s, idle))

    def end(self) -> None:
        self.calls.append(("end",))

    def report_error(self, error: Exception) -> None:
        self.calls.append(("report_error", error))

    def set_probability(self, probability: float) -> None:
        self.calls.append(("set_probability", probability))


@dataclass
class RecordingBoltCollector:
    """A bolt collector that records calls; every emit reaches tasks 7 and 8."""

    calls: Calls

    def emit(
        self,
        values: Sequence[object],
        stream: str = "default",
        anchors: Iterable[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        self.calls.append(("emit", values, stream, anchors, direct_task, need_task_ids))
        return [7, 8] if need_task_ids else None

    def emit_columns(
        self,
        batch: Columns,
        stream: str = "default",
        anchors: Iterable[object] | None = None,
        direct_task: int | None = None,
    ) -> None:
        self.calls.append(("emit_columns", batch, stream, anchors, direct_task))

    def emit_plain(
        self,
        payload: bytes,
        rows: int,
        stream: str = "default",
        anchors: Sequence[tuple[PlainBatch | Tuple, Sequence[int]]] = (),
    ) -> Sequence[tuple[object, ...]]:
        self.calls.append(("emit_plain", payload, rows, stream, anchors))
        return ()

    def settle_rows(self, batch: PlainBatch, places: Sequence[int], *, acked: bool) -> None:
        self.calls.append(("settle_rows", batch, places, acked))

    def flush_if_due(self) -> bool:
        self.calls.append(("flush_if_due",))
        return False

    def ack(self, tup: object) -> None:
        self.calls.append(("ack", tup))

    def fail(self, tup: object) -> None:
        self.calls.append(("fail", tup))

    def report_error(self, error: Exception) -> None:
        self.calls.append(("report_error", error))

    def set_probability(self, probability: float) -> None:
        self.calls.append(("set_probability", probability))


class LoneContext(TopologyContext):
    """The context of the only task of the component "lone"."""

    def get_task_id(self) -> int:
        return 1

    def get_task_index(self) -> int:
        return 0

    def get_parallelism(self) -> int:
        return 1

    def get_component_id(self) -> str:
        return "lone"

    def get_topology_name(self) -> str:
        return "alone"

    def get_config(self) -> Mapping[str, object]:
        return {}

    def get_cluster_config(self) -> Mapping[str, object]:
        return {}

    def get_topology(self) -> TopologyDefinition:
        return TopologyDefinition("alone", ())

    def get_component_tasks(self, component_id: str) -> list[int]:
        return [1]

    def get_sources(self, component_id: str) -> Mapping[GlobalStreamId, GroupingDefinition]:
        return {}

    def register_metric(self, name: str, metric: IMetric, time_bucket_in_sec: float) -> None:
        raise NotImplementedError

    def add_task_hook(self, task_hook: ITaskHook) -> None:
        raise NotImplementedError

    def threadsafe_collector(self) -> ThreadsafeCollector:
        raise NotImplementedError

    def keyed_state(
        self, name: str, kind: type[S], *, default: object = None, ttl_s: float | None = None, event_time: bool = False
    ) -> S:
        raise NotImplementedError

    def owns(self, key: object) -> bool:
        return True


@pytest.fixture
def calls() -> Calls:
    return []


@pytest.fixture
def spout_collector(calls: Calls) -> SpoutCollector:
    return RecordingSpoutCollector(calls)


@pytest.fixture
def bolt_collector(calls: Calls) -> BoltCollector:
    return RecordingBoltCollector(calls)


@pytest.fixture
def context() -> TopologyContext:
    return LoneContext()
