"""Names and labels by the conventions of Prometheus: ``heron_``, base units, ``_total`` for counters. Pure."""

from __future__ import annotations

import re

from heron.spi.metricsink import Metric, MetricKind, Source

__all__ = ["family_name", "labels_of"]

_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_]+")
_UNITS = {"s": "seconds", "bytes": "bytes"}
_RESERVED_SUFFIXES = ("_total", "_count", "_sum", "_bucket", "_created")  # parts of counters and histograms
_SHORT_UNIT = re.compile(r"_s$")


def family_name(metric: Metric) -> str:
    """Return the name of the family, without ``_total``, which the format adds to counters."""
    name = f"heron_{_NOT_ALLOWED.sub('_', metric.name).strip('_')}"
    unit = _UNITS.get(metric.unit, "")
    if unit == "seconds":
        name = _SHORT_UNIT.sub("", name)
    if unit and not name.endswith(f"_{unit}"):
        name = f"{name}_{unit}"
    if metric.kind is MetricKind.COUNTER:
        return name.removesuffix("_total")
    return f"{name}_value" if name.endswith(_RESERVED_SUFFIXES) else name


def labels_of(source: Source, metric: Metric) -> dict[str, str]:
    """Return the labels of the source and of the metric.

    A label of the metric with the name of a label of the source gets the prefix ``exported_``.
    """
    found = {"topology": source.topology, "container": str(source.container_id), "process": source.process}
    if source.task_id:
        found |= {"component": source.component, "task": str(source.task_id)}
    reserved = {*found, "component", "task", "le"}
    for name, value in sorted(metric.labels.items()):
        clean = _NOT_ALLOWED.sub("_", name).lstrip("_0123456789") or "label"
        key = f"exported_{clean}" if clean in reserved else clean
        found.setdefault(key, value)
    return {name: _utf8(value) for name, value in found.items()}


def _utf8(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode: one of them would make the whole page fail."""
    return text.encode("utf-8", "replace").decode()
