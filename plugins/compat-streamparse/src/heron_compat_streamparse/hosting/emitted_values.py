"""Values of an emit, as they were when it was called.

pystorm encodes a tuple at once, so its programs may change a list or dict after they have emitted it. An instance
encodes a batch later, and therefore gets a copy.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["emitted_values"]

_UNCHANGING = frozenset({str, int, float, bool, bytes, type(None)})


def emitted_values(values: Sequence[object]) -> Sequence[object]:
    """Return the values, with copies of the lists and dicts among and inside them."""
    return values if _UNCHANGING.issuperset(map(type, values)) else [_copied(each) for each in values]


def _copied(value: object) -> object:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_copied(each) for each in value]
    if type(value) is tuple:
        return tuple(_copied(each) for each in value)
    return value
