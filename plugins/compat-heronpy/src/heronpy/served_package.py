"""The entry point of this distribution, which names the foreign package that it provides."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["ServedPackage"]


class ServedPackage:
    """The package `heronpy`. Its import name is the one that programs use, not that of the distribution."""

    package: ClassVar[str] = "heronpy"
