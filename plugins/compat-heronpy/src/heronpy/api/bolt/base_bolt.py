"""The methods that a bolt calls."""

from __future__ import annotations

from heron.api.bolt import BaseBolt

__all__ = ["BaseBolt"]
