"""Decodes values in JSON, and checks them with their schema in a registry. Needs the extra ``json``."""

from __future__ import annotations

import json
from typing import Any

from heron.errors import ConnectorError
from heron_connector_kafka.schema_decoder import SchemaDecoder
from heron_connector_kafka.schema_registry import Schema

try:
    from jsonschema import validators  # type: ignore[import-untyped]
    from jsonschema.exceptions import SchemaError, ValidationError  # type: ignore[import-untyped]
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT7
except ImportError as missing:
    _TEXT = f"JSON Schema needs jsonschema ({missing}): pip install 'heron-connector-kafka[json]'"
    raise ImportError(_TEXT) from missing

__all__ = ["JsonDecoder"]


class JsonDecoder(SchemaDecoder[Any]):
    """A function of a record's key or value; None, as of a tombstone, stays None.

    It gives dicts, lists, texts, numbers, booleans and None. A schema is one of draft 7 if it does not say. What it
    refers to is taken from the registry, never from the network.
    """

    kind = "JSON"

    def _prepare(self, schema: Schema) -> Any:  # noqa: ANN401  # of jsonschema
        try:
            others = [
                (name, Resource.from_contents(json.loads(text), default_specification=DRAFT7))
                for name, text in schema.references
            ]
            parsed = json.loads(schema.text)
            kind = validators.validator_for(parsed, default=validators.Draft7Validator)
            kind.check_schema(parsed)
            return kind(parsed, registry=Registry().with_resources(others))
        except (ValueError, SchemaError) as error:
            msg = f"schema id {schema.id} is not a JSON schema: {error}"
            raise ConnectorError(msg) from error

    def _decode(self, number: int, prepared: Any, body: memoryview) -> Any:  # noqa: ANN401  # as the schema says
        try:
            value = json.loads(bytes(body))
            prepared.validate(value)
        except (ValueError, RecursionError) as error:
            msg = f"{len(body)} bytes are not JSON: {error}"
            raise ConnectorError(msg) from error
        except ValidationError as error:
            msg = f"the value is not one of JSON schema id {number}: {error.json_path}: {error.message}"
            raise ConnectorError(msg) from error
        except Unresolvable as error:
            msg = f"JSON schema id {number} refers to {error.ref!r}, which is not among its references in the registry"
            raise ConnectorError(msg) from error
        return value
