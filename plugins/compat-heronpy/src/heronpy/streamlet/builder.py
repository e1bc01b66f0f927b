"""Collects the operators of a pipeline."""

from __future__ import annotations

from heron_streamlet import Builder

__all__ = ["Builder"]
