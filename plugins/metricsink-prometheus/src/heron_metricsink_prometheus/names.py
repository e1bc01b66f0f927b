"""Names and labels by Prometheus' conventions: ``heron_``, base units, ``_total`` for counters. Pure."""

from __future__ import annotations

import re

from heron.spi.metricsink import Metric, MetricKind, Source

__all__ = ["family_name", "labels_of"]

_STRANGE = re.compile(r"[^a-zA-Z0-9_]+")
_UNITS = {"s": "seconds", "bytes": "bytes"}
_TAKEN = ("_total", "_count", "_sum", "_bucket", "_created")  # of a gauge they would look like another's
_SHORT_UNIT = re.compile(r"_s$")


def family_name(metric: Metric) -> str:
    """The name of the family without ``_total``, which the format adds to counters."""
    name = f"heron_{_STRANGE.sub('_', metric.name).strip('_')}"
    unit = _UNITS.get(metric.unit, "")
    if unit == "seconds":
        name = _SHORT_UNIT.sub("", name)
    if unit and not name.endswith(f"_{unit}"):
        name = f"{name}_{unit}"
    if metric.kind is MetricKind.COUNTER:
        return name.removesuffix("_total")
    return f"{name}_value" if name.endswith(_TAKEN) else name


def labels_of(source: Source, metric: Metric) -> dict[str, str]:
    """Where it is from, and the metric's own; one with the name of the former begins with ``exported_``."""
    found = {"topology": source.topology, "container": str(source.container_id), "process": source.process}
    if source.task_id:
        found |= {"component": source.component, "task": str(source.task_id)}
    reserved = {*found, "component", "task", "le"}
    for name, value in sorted(metric.labels.items()):
        clean = _STRANGE.sub("_", name).lstrip("_0123456789") or "label"
        key = f"exported_{clean}" if clean in reserved else clean
        found.setdefault(key, value)
    return {name: _utf8(value) for name, value in found.items()}


def _utf8(text: str) -> str:
    """Without what cannot be written as UTF-8: half a character would spoil the whole page."""
    return text.encode("utf-8", "replace").decode()
