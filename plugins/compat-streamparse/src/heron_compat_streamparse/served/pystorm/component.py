"""The root of components."""

from __future__ import annotations

from heron_compat_streamparse.components.component import Component, StormHandler
from heron_compat_streamparse.hosting.tuples import Tuple

__all__ = ["Component", "StormHandler", "Tuple"]
