"""Runs pipelines."""

from __future__ import annotations

from heron_streamlet import Runner

__all__ = ["Runner"]
