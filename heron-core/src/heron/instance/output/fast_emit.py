"""The compiled emit of `heron-speedups`, where that is installed; elsewhere the generated one alone.

The generated emit stays the truth: the compiled one passes every call on to it that is not usual, before it has changed
anything. `HERON_PURE=1` in the environment leaves the compiled one out.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from heron.driver_kit.loading import load_object
from heron.errors import PluginError
from heron.instance.output.out_stream import OutStream
from heron.instance.output.tracked_stream import UNANCHORED, AnchoredStream, RootStream

if TYPE_CHECKING:
    Emit = Callable[..., list[int] | None]

__all__ = ["CONTRACT", "Speedups", "fast_emit", "speedups"]

CONTRACT = 1
"""The version of `make` that is known here, with the meaning of its arguments."""

_PURE = "HERON_PURE"
_MOST_EDGES = 8
_ALWAYS, _UNLESS_NONE, _ANCHOR = range(3)  # what a list gets of an argument


@dataclass(frozen=True, slots=True)
class Speedups:
    """Whether the compiled emit is used: `make` makes it, or is None; `state` says why, for a person.

    `is_broken`: it is installed, and cannot be used.
    """

    make: object | None
    state: str
    is_broken: bool = False


def speedups() -> Speedups:
    """Looks for `heron-speedups`."""
    if os.environ.get(_PURE, "") not in ("", "0"):
        return Speedups(None, f"left out by {_PURE}")
    try:
        found = load_object("heron_speedups.compiled_emit:CONTRACT", "the compiled emit")
        make = load_object("heron_speedups.compiled_emit:make", "the compiled emit")
    except PluginError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            return Speedups(None, "not installed")
        return Speedups(None, str(error), is_broken=True)
    if found != CONTRACT:
        state = f"heron-speedups has version {found} of the contract, and this heron-core needs {CONTRACT}"
        return Speedups(None, state, is_broken=True)
    return Speedups(make, "in use")


def fast_emit(
    generated: Emit, stream: OutStream, overflow: Callable[[object], None], ids: list[object] | None, *, spout: bool
) -> Emit:
    """The compiled twin of the emit that was generated for a stream; `generated` itself where there is none."""
    make, routes = _make(), stream.routes
    if make is None or stream.shedder is not None or routes.choosers or routes.direct_picks:
        return generated
    if len(routes.keyed) > _MOST_EDGES or not all(isinstance(edge.memo, dict) for edge in routes.keyed):
        return generated
    edges = tuple((edge.positions, edge.memo, edge.picks) for edge in routes.keyed)
    extras, kind, absent = ids, _UNLESS_NONE, cast("object", None)
    if isinstance(stream, RootStream):
        extras, kind = stream.ids, _ALWAYS
    elif isinstance(stream, AnchoredStream):
        extras, kind, absent = cast("list[object]", stream.anchors.parents), _ANCHOR, UNANCHORED
    name = "tup_id" if spout else "anchors"
    return make(generated, stream, overflow, stream.rows, stream.arity, edges, name, extras, kind, absent)


@functools.cache
def _make() -> Callable[..., Emit] | None:
    return cast("Callable[..., Emit] | None", speedups().make)
