"""The base class of spouts."""

from __future__ import annotations

from heron.api.spout import Spout

__all__ = ["Spout"]
