"""The contract of serializers, kept by the driver ``marshal``."""

from __future__ import annotations

from heron_serializer_marshal import MarshalSerializer
from heron_testing.contracts.serializer import SerializerContract


class TestMarshalSerializer(SerializerContract):
    name = "marshal"
    driver_class = MarshalSerializer
