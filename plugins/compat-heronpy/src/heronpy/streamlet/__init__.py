"""Streamlets, which are not supported: programs may import the modules of this package, but not use them."""

from __future__ import annotations

from heronpy.refused_part import STREAMLET_MODULES, provide

provide(__name__, STREAMLET_MODULES)
