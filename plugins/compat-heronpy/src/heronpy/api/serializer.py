"""Serializers that programs call themselves. Tuples travel by the serializer of `topology.serializer` instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cloudpickle

from heron.api.serializer import IHeronSerializer
from heron.errors import SerializationError

__all__ = ["IHeronSerializer", "PythonSerializer", "default_serializer"]


class PythonSerializer(IHeronSerializer):
    """cloudpickle: it also takes lambdas, and classes of the main block."""

    def initialize(self, config: Mapping[str, Any] | None = None) -> None:
        """Do nothing: cloudpickle needs no configuration."""

    def serialize(self, obj: object) -> bytes:
        """Return a value as bytes.

        Raises:
            SerializationError: when the value, or a value inside it, cannot be pickled.
        """
        try:
            return bytes(cloudpickle.dumps(obj))
        except Exception as error:  # pickling runs the value's own code: any exception may come
            msg = f"value of type {type(obj).__name__} cannot be pickled: {error}"
            raise SerializationError(msg) from error

    def deserialize(self, input_str: bytes) -> Any:  # noqa: ANN401  # whatever was serialised
        """Return the value of bytes that `serialize` made.

        Raises:
            SerializationError: when the bytes are cut or garbled, or name a class that cannot be imported.
        """
        try:
            return cloudpickle.loads(input_str)
        except Exception as error:
            msg = f"{len(input_str)} bytes cannot be unpickled: {error}; give what `serialize` returned"
            raise SerializationError(msg) from error


default_serializer = PythonSerializer()
