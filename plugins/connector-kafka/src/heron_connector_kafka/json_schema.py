"""Decodes values in JSON, and checks them with their schema in a registry. Needs the extra ``json``."""

from __future__ import annotations

import json
from typing import Any

from heron.errors import ConnectorError
from heron_connector_kafka.schema_registry import Schema, SchemaRegistry, body_of

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


class JsonDecoder:
    """A function of a record's key or value; None, as of a tombstone, stays None.

    A schema is one of draft 7 if it does not say. What it refers to is taken from the registry, never from the network.
    """

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._validators: dict[int, Any] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_validators": {}}

    def __call__(self, data: bytes | None) -> Any:  # noqa: ANN401  # as the schema says
        """The value: dicts, lists, texts, numbers, booleans, None.

        Raises:
            ConnectorError: when the bytes are not of this format or of their schema, or the registry does not have it.
        """
        if data is None:
            return None
        number, body = body_of(data)
        if number not in self._validators:
            self._validators[number] = _validator(self._registry.schema(number))
        try:
            value = json.loads(bytes(body))
            self._validators[number].validate(value)
        except (ValueError, RecursionError) as error:
            msg = f"{len(data)} bytes are not JSON: {error}"
            raise ConnectorError(msg) from error
        except ValidationError as error:
            msg = f"the value is not one of JSON schema id {number}: {error.json_path}: {error.message}"
            raise ConnectorError(msg) from error
        except Unresolvable as error:
            msg = f"JSON schema id {number} refers to {error.ref!r}, which is not among its references in the registry"
            raise ConnectorError(msg) from error
        return value


def _validator(schema: Schema) -> Any:  # noqa: ANN401  # of jsonschema
    if schema.kind != "JSON":
        msg = f"schema id {schema.id} is of the kind {schema.kind}, not JSON"
        raise ConnectorError(msg)
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
