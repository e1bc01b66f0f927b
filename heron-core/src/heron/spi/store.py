"""Contract of the store family, which keeps views: aggregates by key, of history and of what happens now.

A *view* has for each key one value of history, which a batch wrote, and values of live *spans*: times of equal length,
each named by its start in microseconds since the epoch. A reader merges the value of history with those of the spans
that begin at or after the end of the batch. Values are bytes; their meaning belongs to the author of the view. Why:
docs/decisions/030-views-of-history-and-now.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from heron.spi.driver import Driver

__all__ = ["CAPABILITIES", "OLDEST_SPI_VERSION", "SPI_VERSION", "Batch", "Reading", "SpanKey", "ViewStore"]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1

CAPABILITIES = frozenset({"server", "shared"})
"""``shared``: every host can use the views that one host wrote. ``server``: a server keeps them, and it may be away."""

SpanKey = tuple[int, bytes]
"""The start of a span in microseconds since the epoch, and a key of 1 to 1,024 bytes."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A computation over all history before `until_us`, in microseconds since the epoch.

    `run` tells two computations of the same history apart: 1 to 64 letters, digits, ``_`` and ``-``.
    """

    until_us: int
    run: str


@dataclass(frozen=True, slots=True)
class Reading:
    """The values of some keys at one instant.

    Attributes:
        until_us: the end of the batch that is visible; None before the first one.
        history: the values of the batch by key; keys that it does not have are missing.
        live: by key, the values of the spans that begin at or after `until_us` (all spans, without a batch), in the
            order of their starts; keys without such values are missing.
        live_at_us: when the live writer that is furthest behind has published last, by the clocks of the writers; None
            if nothing was published.
    """

    until_us: int | None
    history: Mapping[bytes, bytes]
    live: Mapping[bytes, Sequence[bytes]]
    live_at_us: int | None


class ViewStore(Driver):
    """Keeps views under names of 1 to 100 letters, digits, ``_`` and ``-``; others are refused with a `StoreError`.

    A view is written by at most one live topology, whose tasks are the *writers* 0 to n-1, and by one batch at a time,
    whose tasks are the *parts*. Any number of processes read. A writer or part is one thread of one process; after a
    death, its successor may run while the dead process still finishes a call.

    Every method that writes is idempotent: a repetition with the same arguments changes nothing. It is atomic as well:
    others see all of its effect or nothing. A method may block at most 30 s. Options have no secrets, because they are
    part of topologies; a password is in a file, of which they have the path.
    """

    @abstractmethod
    def stage(self, view: str, writer: int, version: int, values: Mapping[SpanKey, bytes]) -> None:
        """Keep values of live spans durably, without showing them.

        Args:
            view: the view.
            writer: the task that writes.
            version: the number of the checkpoint that they belong to, from 1; ascending for each writer.
            values: the values, each at most 16 MiB; those that the same writer staged with this version and key are
                replaced.

        Raises:
            StoreError: when they cannot be kept; names the view, the place, the reason and the remedy.
        """

    @abstractmethod
    def publish(self, view: str, writer: int, version: int, at_us: int) -> None:
        """Show all that this writer staged with versions up to this one, and that it has published at `at_us`.

        A value replaces that of an older or equal version, and never one of a newer version. Nothing staged is no
        error: the time is noted.

        Raises:
            StoreError: when it cannot be shown.
        """

    @abstractmethod
    def discard(self, view: str, writer: int, above: int) -> None:
        """Remove what this writer staged with versions above this one; published values stay.

        Raises:
            StoreError: when it cannot be removed.
        """

    @abstractmethod
    def retire(self, view: str, writers: int, version: int) -> None:
        """Forget the writers from number `writers` on, which no longer exist, and their times.

        What they staged with versions up to this one is shown, the rest is removed.

        Raises:
            StoreError: when it cannot be done.
        """

    @abstractmethod
    def stage_batch(self, view: str, batch: Batch, part: int, values: Mapping[bytes, bytes]) -> None:
        """Keep values of history durably, without showing them. No two parts of a batch have the same key.

        Several calls for a part add up; a key that the part has staged before is replaced. After `publish_batch` has
        shown this batch, the call changes nothing.

        Raises:
            StoreError: when they cannot be kept, or the batch was removed, or a later batch is visible.
        """

    @abstractmethod
    def publish_batch(self, view: str, batch: Batch, part: int, parts: int) -> None:
        """Note that a part is complete. With the last of `parts`, show the batch in place of the former one.

        In the same step the former batch, other batches that are not visible and end no later, and live spans that
        begin before the batch's end are removed. A batch with the same end and another run replaces the visible one.
        A batch that was removed is refused from then on, so that a late part of it does not show an incomplete one.

        Raises:
            StoreError: when it cannot be shown, or was removed, or a later batch is visible; names both ends.
        """

    @abstractmethod
    def read(self, view: str, keys: Iterable[bytes]) -> Reading:
        """Return the values of these keys, all of one instant; a view that does not exist has no values.

        Raises:
            StoreError: when the store cannot read.
        """

    @abstractmethod
    def keys(self, view: str, after: bytes = b"", limit: int = 1000) -> list[bytes]:
        """Return the next keys behind `after` that have a value, in the order of their bytes, at most `limit`.

        Raises:
            StoreError: when the store cannot read.
        """

    def close(self) -> None:
        """Release connections and files. No other method is called afterwards."""

    @abstractmethod
    def drop(self, view: str) -> None:
        """Remove a view with all that is staged; a view that does not exist is no error.

        Raises:
            StoreError: when it cannot be removed.
        """
