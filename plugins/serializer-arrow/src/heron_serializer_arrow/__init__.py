"""The serializer ``arrow``: columns between components, as Apache Arrow record batches."""

from __future__ import annotations

from heron_serializer_arrow.serializer import ArrowSerializer

__all__ = ["ArrowSerializer"]
