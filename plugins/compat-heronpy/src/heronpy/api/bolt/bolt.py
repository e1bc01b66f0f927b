"""The base class of bolts."""

from __future__ import annotations

from heron.api.bolt import Bolt

__all__ = ["Bolt"]
