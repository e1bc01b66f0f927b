"""The configuration of a pipeline."""

from __future__ import annotations

from heron_streamlet import Config

__all__ = ["Config"]
