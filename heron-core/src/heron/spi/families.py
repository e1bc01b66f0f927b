"""The families of drivers, and the contract of each. A profile or topology chooses them, except those of `task`."""

from __future__ import annotations

from collections.abc import Mapping

from heron.spi.checkpoint import CheckpointStore
from heron.spi.driver import Driver
from heron.spi.engine import PipelineEngine
from heron.spi.health import HealthPolicy
from heron.spi.inspector import TaskInspector
from heron.spi.metricsink import MetricsSink
from heron.spi.packing import Packing
from heron.spi.scheduler import Scheduler
from heron.spi.serializer import Serializer
from heron.spi.state import StateBackend
from heron.spi.statemgr import StateManager
from heron.spi.store import ViewStore
from heron.spi.uploader import Uploader

__all__ = ["FAMILIES"]

FAMILIES: Mapping[str, type[Driver]] = {
    "scheduler": Scheduler,
    "statemgr": StateManager,
    "uploader": Uploader,
    "packing": Packing,
    "metricsink": MetricsSink,
    "serializer": Serializer,
    "checkpoint": CheckpointStore,
    "state": StateBackend,
    "engine": PipelineEngine,
    "store": ViewStore,
    "health": HealthPolicy,
    "task": TaskInspector,
}
"""Family to contract; the entry-point group of a family is ``heron.FAMILY``."""
