"""Decodes values in Avro whose schema is in a registry. Needs the extra ``avro``."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from heron.errors import ConnectorError
from heron_connector_kafka.schema_registry import Schema, SchemaRegistry, body_of

try:
    import fastavro
except ImportError as missing:
    _TEXT = f"Avro needs fastavro ({missing}): pip install 'heron-connector-kafka[avro]'"
    raise ImportError(_TEXT) from missing

__all__ = ["AvroDecoder"]


class AvroDecoder:
    """A function of a record's key or value; None, as of a tombstone, stays None.

    Args:
        registry: has the schemas of the writers.
        schema: the schema of the reader, as JSON or as its objects: values of other versions are converted to it, by
            Avro's rules. Without it, each value is as its writer's schema says.
    """

    def __init__(self, registry: SchemaRegistry, schema: str | Mapping[str, object] | None = None) -> None:
        self._registry = registry
        self._reader: Any = json.loads(schema) if isinstance(schema, str) else schema
        self._parsed: dict[int, Any] = {}

    def __call__(self, data: bytes | None) -> Any:  # noqa: ANN401  # as the schema says
        """The value: dicts, lists, texts, bytes, numbers.

        Raises:
            ConnectorError: when the bytes are not of this format or of their schema, or the registry does not have it.
        """
        if data is None:
            return None
        number, body = body_of(data)
        if number not in self._parsed:
            self._parsed[number] = _parsed(self._registry.schema(number))
        file = io.BytesIO(body)
        try:
            value = fastavro.schemaless_reader(file, self._parsed[number], self._reader)
        except Exception as error:  # hostile bytes raise what they reach
            msg = f"{len(data)} bytes are not a value of Avro schema id {number}: {type(error).__name__}: {error}"
            raise ConnectorError(msg) from error
        if left := len(body) - file.tell():
            msg = f"{len(data)} bytes are not a value of Avro schema id {number}: {left} bytes are left behind it"
            raise ConnectorError(msg)
        return value


def _parsed(schema: Schema) -> Any:  # noqa: ANN401  # of fastavro
    if schema.kind != "AVRO":
        msg = f"schema id {schema.id} is of the kind {schema.kind}, not AVRO"
        raise ConnectorError(msg)
    named: dict[str, Any] = {}
    try:
        for _, text in schema.references:
            fastavro.parse_schema(json.loads(text), named)
        return fastavro.parse_schema(json.loads(schema.text), named)
    except Exception as error:  # of the registry's text
        msg = f"schema id {schema.id} is not a schema of Avro: {type(error).__name__}: {error}"
        raise ConnectorError(msg) from error
