"""The serializer of the core keeps the contract of its family."""

from __future__ import annotations

from heron.instance.codec.serializers import PickleSerializer
from heron_testing.contracts.serializer import SerializerContract


class TestContract(SerializerContract):
    """pickle is found, described and checked like any other driver."""

    name = "pickle"
    driver_class = PickleSerializer
