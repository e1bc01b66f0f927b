"""How values become bytes where a program asks for it. Tuples travel by `topology.serializer` instead."""

from __future__ import annotations

from typing import Any

import cloudpickle

from heron.api.serializer import IHeronSerializer
from heron.errors import SerializationError

__all__ = ["IHeronSerializer", "PythonSerializer", "default_serializer"]


class PythonSerializer(IHeronSerializer):
    """cloudpickle: functions without a name, and classes of the main block, travel too."""

    def serialize(self, obj: object) -> bytes:
        """The bytes of a value.

        Raises:
            SerializationError: when the value, or one inside it, cannot be pickled.
        """
        try:
            return bytes(cloudpickle.dumps(obj))
        except Exception as error:  # pickling runs the value's own code: any exception may come
            msg = f"value of type {type(obj).__name__} cannot be pickled: {error}"
            raise SerializationError(msg) from error

    def deserialize(self, input_str: bytes) -> Any:  # noqa: ANN401  # whatever was serialised
        """The value of these bytes.

        Raises:
            SerializationError: when the bytes are cut, garbled, or name a class that is not there.
        """
        try:
            return cloudpickle.loads(input_str)
        except Exception as error:
            msg = f"{len(input_str)} bytes cannot be unpickled: {error}"
            raise SerializationError(msg) from error


default_serializer = PythonSerializer()
