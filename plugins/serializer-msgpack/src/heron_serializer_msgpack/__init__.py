"""The serializer ``msgpack``: batches that other languages can read."""

from __future__ import annotations

from heron_serializer_msgpack.serializer import MsgpackSerializer

__all__ = ["MsgpackSerializer"]
