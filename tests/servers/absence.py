"""What a test does where the machine lacks what it needs: a server, root, a file system."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

__all__ = ["not_here"]


def not_here(reason: str) -> NoReturn:
    """Ends a test that this machine cannot run: a failure in continuous integration (``CI`` is set), else a skip."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
