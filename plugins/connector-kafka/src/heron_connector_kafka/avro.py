"""Decodes values in Avro whose schema is in a registry. Needs the extra ``avro``."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from heron.errors import ConnectorError
from heron_connector_kafka.schema_decoder import SchemaDecoder
from heron_connector_kafka.schema_registry import Schema, SchemaRegistry

try:
    import fastavro
except ImportError as missing:
    _TEXT = f"Avro needs fastavro ({missing}): pip install 'heron-connector-kafka[avro]'"
    raise ImportError(_TEXT) from missing

__all__ = ["AvroDecoder"]


class AvroDecoder(SchemaDecoder[Any]):
    """A function of a record's key or value; None, as of a tombstone, stays None.

    It gives dicts, lists, texts, bytes and numbers.

    Args:
        registry: has the schemas of the writers.
        schema: the schema of the reader, as JSON or as its objects: values of other versions are converted to it, by
            Avro's rules. Without it, each value is as its writer's schema says.
    """

    kind = "AVRO"

    def __init__(self, registry: SchemaRegistry, schema: str | Mapping[str, object] | None = None) -> None:
        super().__init__(registry)
        self._reader: Any = json.loads(schema) if isinstance(schema, str) else schema

    def _prepare(self, schema: Schema) -> Any:  # noqa: ANN401  # of fastavro
        named: dict[str, Any] = {}
        try:
            for _, text in schema.references:
                fastavro.parse_schema(json.loads(text), named)
            return fastavro.parse_schema(json.loads(schema.text), named)
        except Exception as error:  # of the registry's text
            msg = f"schema id {schema.id} is not a schema of Avro: {type(error).__name__}: {error}"
            raise ConnectorError(msg) from error

    def _decode(self, number: int, prepared: Any, body: memoryview) -> Any:  # noqa: ANN401  # as the schema says
        file = io.BytesIO(body)
        try:
            value = fastavro.schemaless_reader(file, prepared, self._reader)
        except Exception as error:  # hostile bytes raise what they reach
            msg = f"{len(body)} bytes are not a value of Avro schema id {number}: {type(error).__name__}: {error}"
            raise ConnectorError(msg) from error
        if left := len(body) - file.tell():
            msg = f"{len(body)} bytes are not a value of Avro schema id {number}: {left} bytes are left behind it"
            raise ConnectorError(msg)
        return value
