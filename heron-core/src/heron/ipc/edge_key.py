"""Keys of tuple copies: derived, so that neither side ships an array of them.

The key of a copy is a 64-bit mix of its batch's key, its row and its destination task. A plain counter would cancel in
the XOR of a tree (1 ^ 2 ^ 3 = 0), and so would two copies of one row with one key. Mixer: splitmix64 (Steele, Lea and
Flood, OOPSLA 2014).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["U64", "edge_keys", "edge_keys_of_range", "row_numbers"]

U64 = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TASK_STEP = 0xD1B54A32D192ED03
_MASK = 0xFFFFFFFFFFFFFFFF
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_30, _SHIFT_27, _SHIFT_31 = np.uint64(30), np.uint64(27), np.uint64(31)


def edge_keys(batch_key: int, rows: U64, task_id: int) -> U64:
    """The keys of these rows' copies for a task."""
    z = rows * _GOLDEN
    z += np.uint64((batch_key + task_id * _TASK_STEP) & _MASK)
    z ^= z >> _SHIFT_30
    z *= _MIX_1
    z ^= z >> _SHIFT_27
    z *= _MIX_2
    z ^= z >> _SHIFT_31
    return z


def edge_keys_of_range(batch_key: int, rows: int, task_id: int) -> U64:
    """The keys of rows 0 … rows-1."""
    return edge_keys(batch_key, row_numbers(rows), task_id)


def row_numbers(rows: int) -> U64:
    """0 … rows-1."""
    return np.arange(rows, dtype=np.uint64)
