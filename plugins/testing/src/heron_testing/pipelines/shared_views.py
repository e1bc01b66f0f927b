"""A store of views that all tasks of one process share, and that counts what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from heron.spi.driver import DriverRef
from heron.spi.store import SpanKey
from heron_testing.memory_views import MemoryViewStore

__all__ = ["SHARED_VIEWS", "SharedViews"]

SHARED_VIEWS = DriverRef("store", "shared", "heron_testing.pipelines.shared_views:SharedViews")


class SharedViews(MemoryViewStore):
    """The store of the present test; `begin` makes a new one.

    Attributes:
        staged_values: how many values of live spans were staged.
    """

    staged_values = 0
    _present: ClassVar[SharedViews]

    @classmethod
    def begin(cls) -> Self:
        """Return a new store, which `open` returns from now on."""
        made = super().open({})
        cls._present = made
        return made

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:  # it has none
        """`Driver.open`."""
        assert isinstance(cls._present, cls)
        return cls._present

    def stage(self, view: str, writer: int, version: int, values: Mapping[SpanKey, bytes]) -> None:
        """`ViewStore.stage`."""
        self.staged_values += len(values)
        super().stage(view, writer, version, values)
