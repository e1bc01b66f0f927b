"""The paths that modules had in the version before. They work for one version, with a DeprecationWarning.

Programs import them, and stored values name them: the pickled stages of a topology, and authors' values in checkpoints,
such as a `Window`. The module of an old path has the same classes as that of the new path. Delete this module in
the version after 0.1.
"""

from __future__ import annotations

__all__ = ["MOVED"]

_PACKAGE = "heron_streamlet"
_ROOMS = {
    "api": ("builder", "config", "runner", "stream", "streamlet"),
    "connectors": ("sinks", "sources", "staging", "transformer"),
    "plan": ("graph", "operators", "stages"),
    "runtime": ("early_results", "keyed_stage", "stage_code", "stage_host", "timers"),
    "topology": ("partition_grouping", "source_spout", "stage_bolts", "task_host", "topology_compiler"),
    "windowing": ("event_time", "fold", "keyed_operators", "window", "window_assignment"),
}
_OF_COLUMNS = ("aggregates", "assignment", "batches", "combiner", "gatherer", "steps", "times")
_OF_VIEWS = ("key_bytes", "monoids", "reader", "sides", "sketches", "view", "view_folds", "view_sinks")

MOVED = {f"{_PACKAGE}.{name}": f"{_PACKAGE}.{room}.{name}" for room, names in _ROOMS.items() for name in names}
MOVED |= {f"{_PACKAGE}.columns.{name}": f"{_PACKAGE}.arrow.{name}" for name in _OF_COLUMNS}
MOVED |= {
    f"{_PACKAGE}.columns.sources": f"{_PACKAGE}.arrow.column_sources",
    f"{_PACKAGE}.columns.column_streamlet": f"{_PACKAGE}.api.streamlet",
    f"{_PACKAGE}.lambda_": f"{_PACKAGE}.views",
}
MOVED |= {f"{_PACKAGE}.lambda_.{name}": f"{_PACKAGE}.views.{name}" for name in _OF_VIEWS}
"""The present path of each path that moved."""
