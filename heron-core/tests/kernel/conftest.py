"""The fixture that adds made-up distributions."""

from __future__ import annotations

from heron_testing.builders.distributions import install

__all__ = ["install"]
