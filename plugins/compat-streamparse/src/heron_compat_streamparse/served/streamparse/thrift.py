"""The only name of this module that topologies use."""

from __future__ import annotations

from heron_compat_streamparse.specs.stream import GlobalStreamId

__all__ = ["GlobalStreamId"]
