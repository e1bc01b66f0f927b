"""What the suites of sources and of sinks share.

A connector states what it does not promise by attributes of its suite. The case of such a promise does not exist in the
suite then, so no test is skipped.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

__all__ = ["MIB", "ConnectorContract"]

MIB = 2**20


class ConnectorContract(abc.ABC):
    """A suite whose cases run a program of the author with real processes."""

    program: Path
    """The file that calls a function of `heron_testing.connectors.programs`; its folder travels to the tasks."""

    promises: ClassVar[Mapping[str, str]]
    """The attribute that a case belongs to, for the cases that do not apply to all connectors."""

    exact: bool = True
    """Whether results are exact effectively once, whatever dies."""

    within_s: float = 120.0
    """How long each step of a case may take, in seconds. It only ends a hang."""

    def __init_subclass__(cls) -> None:
        for case, attribute in cls.promises.items():
            if not getattr(cls, attribute):
                setattr(cls, case, None)

    @property
    def best(self) -> str:
        """The best delivery that the connector promises."""
        return "EFFECTIVELY_ONCE" if self.exact else "ATLEAST_ONCE"

    @pytest.fixture
    def sandbox_programs(self) -> Path:
        """The folder of the program."""
        return self.program.parent
