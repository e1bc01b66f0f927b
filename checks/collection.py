"""A plugin of pytest: Python's garbage collections leave out what the collection of tests has made.

A full collection looks at every object, and all tests of the repository are half a million: 0.8 s each time.
"""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest

__all__ = ["pytest_collection"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collections, and keep what is there then out of all later ones."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
