"""Components whose state the engine keeps."""

from __future__ import annotations

from heron.api.state import StatefulComponent

__all__ = ["StatefulComponent"]
