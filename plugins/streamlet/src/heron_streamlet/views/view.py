"""A view: what is aggregated by key, and how its values look in a store."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Generic, TypeVar

from heron.api.names import is_a
from heron.author_text import short_text
from heron.errors import StoreError, UsageError
from heron_streamlet.connectors.sinks import Sink
from heron_streamlet.views.monoids import Monoid
from heron_streamlet.windowing.window import Duration, SlidingWindow, micros

__all__ = ["View", "ViewTarget"]

V = TypeVar("V")
R = TypeVar("R")

_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_WORD = re.compile(r"[A-Za-z0-9-]{1,30}")
_DAY = timedelta(days=1)


class View(Generic[V, R]):
    """Aggregates by key, of history and of what happens now. A pipeline writes it with `Streamlet.to_view`.

    Args:
        name: its name in the store: 1 to 100 letters, digits, ``_`` and ``-``.
        monoid: how values of a key are aggregated.
        span: batches cover whole spans, which are aligned with 1970-01-01T00:00:00Z.
        keep: how long after the end of a span the live side still accepts its elements, in event time; later ones wait
            for the next batch. Without it, one span.

    Raises:
        UsageError: when an argument is wrong.
    """

    def __init__(
        self, name: str, monoid: Monoid[V, Any, R], *, span: Duration = _DAY, keep: Duration | None = None
    ) -> None:
        if not is_a(name, str) or not _NAME.fullmatch(name):
            msg = f"view {short_text(name, 120)}: the name is not 1 to 100 letters, digits, '_' and '-'"
            raise UsageError(msg)
        if not is_a(monoid, Monoid):
            msg = f"view {short_text(name, 120)}: {short_text(monoid, 60)} is not a Monoid, such as Count() or Sum()"
            raise UsageError(msg)
        if not _WORD.fullmatch(getattr(monoid, "word", "")):
            msg = f"view {short_text(name, 120)}: {type(monoid).__name__}.word is not 1 to 30 letters, digits and '-'"
            raise UsageError(msg)
        self.name = name
        self.monoid = monoid
        self.span_us = micros(span, f"view {short_text(name, 120)}: span")
        self.keep_us = self.span_us if keep is None else micros(keep, f"view {short_text(name, 120)}: keep", zero=True)
        self._prefix = f"{monoid.word}:".encode()

    def window(self) -> SlidingWindow:
        """The spans as windows."""
        return SlidingWindow(self.span_us, self.span_us, allowed_lateness_us=self.keep_us)

    def encode(self, accumulator: object) -> bytes:
        """An accumulator as the store holds it."""
        return self._prefix + self.monoid.encode(accumulator)

    def decode(self, data: bytes) -> Any:  # noqa: ANN401  # accumulators belong to the monoid
        """An accumulator of the store.

        Raises:
            StoreError: when another monoid has written it.
        """
        try:
            if data.startswith(self._prefix):
                return self.monoid.decode(data[len(self._prefix) :])
        except Exception as error:
            msg = f"view {self.name!r}: a stored value is damaged: {error}; drop the view, and run the batch again"
            raise StoreError(msg) from error
        written = data[:31].partition(b":")[0].decode("ascii", "replace")
        msg = (
            f"view {self.name!r}: its values were written by the monoid {written!r}, and this pipeline has "
            f"{self.monoid.word!r}; choose another name for the view"
        )
        raise StoreError(msg)


class ViewTarget(Sink[Any]):
    """The place of a view's sink in the plan; `heron_streamlet.views.sides` puts the sink of its side there."""

    def __init__(self, view: View[Any, Any]) -> None:
        self.view = view

    def put(self, element: object) -> None:
        """`Sink.put`.

        Raises:
            TypeError: always: it does not run.
        """
        raise TypeError(self.view.name)
