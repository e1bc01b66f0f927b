"""The state of a stateful component."""

from __future__ import annotations

from heron.api.state import HashMapState, State

__all__ = ["HashMapState", "State"]
