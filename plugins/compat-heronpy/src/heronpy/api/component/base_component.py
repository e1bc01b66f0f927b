"""The root class of spouts and bolts."""

from __future__ import annotations

from heron.api.component import BaseComponent

__all__ = ["BaseComponent"]
