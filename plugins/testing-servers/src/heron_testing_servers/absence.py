"""Tests whose machine lacks a server, root rights or a file system."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

__all__ = ["not_here"]


def not_here(reason: str) -> NoReturn:
    """End a test that this machine cannot run: a failure in continuous integration (``CI`` is set), else a skip."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
