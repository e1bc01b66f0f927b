"""Values of Heron as those that all OTLP messages share: resources, scopes, attributes, times. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from heron.spi.metricsink import Source

__all__ = ["SCOPE", "attributes", "nanoseconds", "resource_of", "text"]

SCOPE = InstrumentationScope(name="heron")

_LATEST_NS = 2**63


def resource_of(source: Source) -> Resource:
    """Return the process that sent a record."""
    values: dict[str, str | int] = {
        "service.namespace": source.topology,
        "service.name": source.component or source.process,
        "service.instance.id": f"{source.process}-{source.container_id}-{source.incarnation}",
        "heron.container": source.container_id,
    }
    if source.task_id:
        values["heron.task"] = source.task_id
    return Resource(attributes=attributes(values))


def attributes(values: Mapping[str, str | int | bool]) -> list[KeyValue]:
    """Return these values as attributes."""
    return [KeyValue(key=text(key), value=_any(value)) for key, value in values.items()]


def nanoseconds(at_s: float) -> int:
    """Return seconds since the epoch in nanoseconds, within the range of the protocol."""
    return min(_LATEST_NS, max(0, int(at_s * 1e9)))


def text(value: str) -> str:
    """Return a text that protobuf accepts: a name of an author may contain lone surrogates."""
    return value.encode("utf-8", "backslashreplace").decode()


def _any(value: str | int | bool) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    return AnyValue(string_value=text(value))
