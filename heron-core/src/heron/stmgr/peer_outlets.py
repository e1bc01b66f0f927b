"""Which segments go to a peer next: pure.

A segment for several tasks of one peer stands in the outlet of each, because each task has its own credit and its own
order. Where it is at the head of several outlets at once, it is sent once for all of them: so an `all` grouping crosses
a link once as long as its tasks keep pace.
"""

from __future__ import annotations

from collections.abc import Iterable

from heron.ipc.frame import retargeted
from heron.stmgr.outlet import Outlet, Segment

__all__ = ["next_segments"]


def next_segments(outlets: Iterable[Outlet], limit_bytes: int) -> list[Segment]:
    """Takes the segments that credit lets through now, at least one if any, and then up to `limit_bytes`."""
    taken: list[Segment] = []
    size_bytes = 0
    candidates = list(outlets)
    while candidates and size_bytes < limit_bytes:
        heads: dict[int, tuple[Segment, list[Outlet]]] = {}
        for outlet in candidates:
            head = outlet.ready()
            if head is not None:
                heads.setdefault(id(head), (head, []))[1].append(outlet)
        candidates = []
        for head, owners in heads.values():
            if taken and size_bytes + len(head) > limit_bytes:
                continue
            sent = retargeted(head, [outlet.task_id for outlet in owners])
            for outlet in owners:
                outlet.pop(len(sent))
            taken.append(sent)
            size_bytes += len(sent)
            candidates.extend(owners)
    return taken
