"""Specs: components as parts of a topology."""

from __future__ import annotations

from heron.api.component_spec import HeronComponentSpec
from heron.api.stream_id import GlobalStreamId

__all__ = ["GlobalStreamId", "HeronComponentSpec"]
