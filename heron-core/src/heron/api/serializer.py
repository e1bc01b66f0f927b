"""Serializers that authors call themselves. Tuples travel by the serializer of ``topology.serializer`` instead."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from heron.author_text import error_text
from heron.errors import SerializationError

__all__ = ["IHeronSerializer", "PythonSerializer", "default_serializer"]


class IHeronSerializer(ABC):
    """Turns values into bytes and back. Both sides of a topology must use the same serializer."""

    def initialize(self, config: Mapping[str, Any]) -> None:  # noqa: B027  # may be omitted
        """Receive the configuration of the topology. Called once, before the other methods."""

    @abstractmethod
    def serialize(self, obj: object) -> bytes:
        """Return a value as bytes.

        Raises:
            SerializationError: when the value cannot be serialised.
        """

    @abstractmethod
    def deserialize(self, input_str: bytes) -> Any:  # noqa: ANN401  # whatever was serialised
        """Return the value of bytes that `serialize` made. Callers pass only bytes from the topology itself.

        Raises:
            SerializationError: when the bytes are not a serialised value.
        """


class PythonSerializer(IHeronSerializer):
    """Pickle, protocol 5. It stores classes and functions by name, so they must be at the top level of a module."""

    def initialize(self, config: Mapping[str, Any] | None = None) -> None:
        """Do nothing: pickle needs no configuration."""

    def serialize(self, obj: object) -> bytes:
        """Return a value as bytes.

        Raises:
            SerializationError: when the value, or a value inside it, cannot be pickled.
        """
        try:
            return pickle.dumps(obj, protocol=5)
        except Exception as error:  # pickle runs the value's own code: any exception may come
            msg = f"value of type {type(obj).__name__} cannot be pickled: {error_text(error)}"
            raise SerializationError(msg) from error

    def deserialize(self, input_str: bytes) -> Any:  # noqa: ANN401  # whatever was serialised
        """Return the value of bytes that `serialize` made.

        Raises:
            SerializationError: when the bytes are cut or garbled, or name a class that cannot be imported.
        """
        try:
            return pickle.loads(input_str)  # noqa: S301  # only bytes from the topology itself, see the contract
        except Exception as error:
            msg = f"{len(input_str)} bytes cannot be unpickled: {error_text(error)}; give what `serialize` returned"
            raise SerializationError(msg) from error


default_serializer = PythonSerializer()
