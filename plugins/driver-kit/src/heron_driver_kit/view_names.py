"""The names, keys and values of views, checked before a store uses them in a path, a table or a key of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable

from heron.errors import StoreError
from heron.spi.store import Batch

__all__ = ["check_batch", "check_entries", "check_key", "check_view", "later_batch", "removed_batch"]

_VIEW = re.compile(r"[A-Za-z0-9_-]{1,100}")
_RUN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KEY_BYTES = 1024
_VALUE_BYTES = 16 * 1024 * 1024


def check_view(view: str) -> None:
    """Raises StoreError when `view` is not the name of a view."""
    if not _VIEW.fullmatch(view):
        msg = f"view {view!r:.120}: the name is refused; use 1 to 100 letters, digits, '_' and '-'"
        raise StoreError(msg)


def check_batch(view: str, batch: Batch) -> None:
    """Raises StoreError when the name of the view or of the run is none."""
    check_view(view)
    if not _RUN.fullmatch(batch.run):
        msg = f"view {view}: the run {batch.run!r:.80} is refused; use 1 to 64 letters, digits, '_' and '-'"
        raise StoreError(msg)


def check_key(view: str, key: bytes) -> None:
    """Raises StoreError when the key is empty or too long."""
    if not 0 < len(key) <= _KEY_BYTES:
        msg = f"view {view}: a key of {len(key)} bytes is refused; use 1 to {_KEY_BYTES} bytes, for example a hash"
        raise StoreError(msg)


def check_entries(view: str, entries: Iterable[tuple[bytes, bytes]]) -> None:
    """Raises StoreError when a key or a value has a size that the contract does not allow."""
    for key, value in entries:
        check_key(view, key)
        if len(value) > _VALUE_BYTES:
            msg = (
                f"view {view}: the value of key {key!r:.80} has {len(value)} bytes, the limit is {_VALUE_BYTES} bytes; "
                "divide it among several keys"
            )
            raise StoreError(msg)


def later_batch(view: str, batch: Batch, visible_until_us: int) -> StoreError:
    """Return the error for a batch that ends before the visible one."""
    msg = (
        f"view {view}: the batch of run {batch.run} ends at {batch.until_us} us, and one that ends at "
        f"{visible_until_us} us is visible; compute a batch that ends later"
    )
    return StoreError(msg)


def removed_batch(view: str, batch: Batch) -> StoreError:
    """Return the error for a batch whose values were removed when another one with the same end became visible."""
    msg = (
        f"view {view}: run {batch.run} of the batch that ends at {batch.until_us} us was removed when another run "
        "became visible; compute it again under the name of a new run"
    )
    return StoreError(msg)
