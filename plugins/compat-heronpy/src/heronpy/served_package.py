"""What the entry point names: which foreign package this distribution serves."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["ServedPackage"]


class ServedPackage:
    """`heronpy`, whose import name is that of the programs and not of the distribution."""

    package: ClassVar[str] = "heronpy"
