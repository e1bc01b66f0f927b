"""The families of drivers, and the contract of each. A profile or topology chooses them, except those of `task`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import cast

from heron.spi.driver import Driver

__all__ = ["FAMILIES"]


class _Contracts(Mapping[str, "type[Driver]"]):
    """Imports the module of a contract when the contract is asked for: a process uses few families."""

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._entries = entries

    def __getitem__(self, family: str) -> type[Driver]:
        module, _, name = self._entries[family].partition(":")
        return cast("type[Driver]", getattr(import_module(f"heron.spi.{module}"), name))

    def __contains__(self, family: object) -> bool:
        return family in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


FAMILIES: Mapping[str, type[Driver]] = _Contracts(
    {
        "scheduler": "scheduler:Scheduler",
        "statemgr": "statemgr:StateManager",
        "uploader": "uploader:Uploader",
        "packing": "packing:Packing",
        "metricsink": "metricsink:MetricsSink",
        "serializer": "serializer:Serializer",
        "checkpoint": "checkpoint:CheckpointStore",
        "state": "state:StateBackend",
        "engine": "engine:PipelineEngine",
        "store": "store:ViewStore",
        "health": "health:HealthPolicy",
        "task": "inspector:TaskInspector",
    }
)
"""Family to contract; the entry-point group of a family is ``heron.FAMILY``."""
