"""Which heron-core this is: what a run is labelled with, so that another version can say that it is another."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["core_version"]


def core_version() -> str:
    """The installed version of heron-core; "unknown" where it runs without being installed."""
    try:
        return version("heron-core")
    except PackageNotFoundError:
        return "unknown"
