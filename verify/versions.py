"""On which versions a suite ran."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable
from pathlib import PurePosixPath

__all__ = ["platform_name", "python_name", "server_versions"]

_VERSION = re.compile(r"^_?(?:(\w+)_)?VERSION = \"([^\"]+)\"$", re.MULTILINE)


def python_name() -> str:
    """Such as ``CPython 3.11.7``."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def platform_name() -> str:
    """The distribution of the operating system, the release of its kernel and the kind of processor."""
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        system = platform.system()
    return f"{system}, {platform.system()} {platform.release().partition('-')[0]}, {platform.machine()}"


def server_versions(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The versions that modules of servers pin, from pairs of path and text: ``_VERSION`` or ``NAME_VERSION``."""
    return {
        (name or PurePosixPath(path).stem).lower(): version
        for path, text in texts
        for name, version in _VERSION.findall(text)
    }
