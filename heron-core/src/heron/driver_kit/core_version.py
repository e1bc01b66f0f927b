"""The version of heron-core. A separate module, because `importlib.metadata` would slow every role process down."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["core_version"]


def core_version() -> str:
    """Return the installed version of heron-core, or "unknown" where it runs without being installed."""
    try:
        return version("heron-core")
    except PackageNotFoundError:
        return "unknown"
