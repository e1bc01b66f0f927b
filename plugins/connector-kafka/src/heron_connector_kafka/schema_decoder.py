"""The base of decoders that ask a registry for the schema of a value: each schema is asked for and prepared once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from heron.errors import ConnectorError
from heron_connector_kafka.schema_registry import Schema, SchemaRegistry, body_of

__all__ = ["SchemaDecoder"]

S = TypeVar("S")


class SchemaDecoder(ABC, Generic[S]):
    """A function of a record's key or value; None, as of a tombstone, stays None.

    Args:
        registry: has the schemas of the writers.
    """

    kind: ClassVar[str]
    """Of the schemas that it knows, as the registry names it."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._prepared: dict[int, S] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_prepared": {}}  # which may not be picklable

    def __call__(self, data: bytes | None) -> Any:  # noqa: ANN401  # as the schema says
        """The value: dicts, lists, texts, numbers, and what else the schema has.

        Raises:
            ConnectorError: when the bytes are not of this format or of their schema, or the registry does not have it.
        """
        if data is None:
            return None
        number, body = body_of(data)
        if number not in self._prepared:
            schema = self._registry.schema(number)
            if schema.kind != self.kind:
                msg = f"schema id {number} is of the kind {schema.kind}, not {self.kind}"
                raise ConnectorError(msg)
            self._prepared[number] = self._prepare(schema)
        return self._decode(number, self._prepared[number], body)

    @abstractmethod
    def _prepare(self, schema: Schema) -> S:
        """What decodes the values of a schema.

        Raises:
            ConnectorError: when the text of the schema is not one.
        """

    @abstractmethod
    def _decode(self, number: int, prepared: S, body: memoryview) -> Any:  # noqa: ANN401  # as above
        """The value behind the id of its schema.

        Raises:
            ConnectorError: when it does not fit the schema.
        """
