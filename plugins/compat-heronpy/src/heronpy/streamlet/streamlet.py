"""Streams that authors transform."""

from __future__ import annotations

from heron_streamlet import Streamlet

__all__ = ["Streamlet"]
