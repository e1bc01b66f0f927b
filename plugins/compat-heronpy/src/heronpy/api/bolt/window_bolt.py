"""Window bolts: they process the tuples of a span of time together."""

from __future__ import annotations

from heron.api.window_bolt import SlidingWindowBolt, TumblingWindowBolt, WindowContext

__all__ = ["SlidingWindowBolt", "TumblingWindowBolt", "WindowContext"]
