"""How a bolt is described, emits and acks."""

from __future__ import annotations

from heron.api.bolt import BaseBolt

__all__ = ["BaseBolt"]
