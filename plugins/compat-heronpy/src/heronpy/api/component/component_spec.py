"""Specs: components as parts of a topology."""

from __future__ import annotations

from heron.api.component_spec import GlobalStreamId, HeronComponentSpec

__all__ = ["GlobalStreamId", "HeronComponentSpec"]
