"""How values become bytes where an author wants a say in it."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from heron.errors import SerializationError

__all__ = ["IHeronSerializer", "PythonSerializer", "default_serializer"]


class IHeronSerializer(ABC):
    """Turns values into bytes and back; both sides of a topology use the same one."""

    def initialize(self, config: Mapping[str, Any]) -> None:  # noqa: B027  # may be omitted
        """Called once, with the topology's configuration."""

    @abstractmethod
    def serialize(self, obj: object) -> bytes:
        """The bytes of a value.

        Raises:
            SerializationError: when the value cannot travel.
        """

    @abstractmethod
    def deserialize(self, input_str: bytes) -> Any:  # noqa: ANN401  # whatever was serialised
        """The value of these bytes; only ever called with bytes from the topology itself.

        Raises:
            SerializationError: when the bytes are no value.
        """


class PythonSerializer(IHeronSerializer):
    """Pickle, protocol 5. Classes and functions travel by name, so they must stand at the top of a module."""

    def serialize(self, obj: object) -> bytes:
        """The bytes of a value.

        Raises:
            SerializationError: when the value, or one inside it, cannot be pickled.
        """
        try:
            return pickle.dumps(obj, protocol=5)
        except Exception as error:  # pickle runs the value's own code: any exception may come
            msg = f"value of type {type(obj).__name__} cannot be pickled: {error}"
            raise SerializationError(msg) from error

    def deserialize(self, input_str: bytes) -> Any:  # noqa: ANN401  # whatever was serialised
        """The value of these bytes.

        Raises:
            SerializationError: when the bytes are cut, garbled, or name a class that is not there.
        """
        try:
            return pickle.loads(input_str)  # noqa: S301  # only from the topology itself, see the contract
        except Exception as error:
            msg = f"{len(input_str)} bytes cannot be unpickled: {error}"
            raise SerializationError(msg) from error


default_serializer = PythonSerializer()
