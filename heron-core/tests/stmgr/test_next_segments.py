"""The next segments for a peer: a segment for several tasks is sent once, and each task keeps its order and credit."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from heron.ipc.frames.frame import parse_segment
from heron.stmgr.outlet import Outlet, Watermarks
from heron.stmgr.peer_session import next_segments
from parts import decoded_rows, tuple_segment


def tuples(destinations: Sequence[int], payload: object) -> bytes:
    return tuple_segment([(payload,)], destinations)


def outlets_of(*task_ids: int, window_bytes: int = 1_000_000) -> dict[int, Outlet]:
    made = {task_id: Outlet(task_id, Watermarks(1000, 1_000_000, 1_000_000)) for task_id in task_ids}
    for outlet in made.values():
        outlet.open(window_bytes)
    return made


def put(outlets: dict[int, Outlet], data: bytes) -> None:
    for task_id in parse_segment(data, 0).destinations:
        if task_id in outlets:
            outlets[task_id].put(data)


def sent(outlets: dict[int, Outlet], limit_bytes: int = 1_000_000) -> list[tuple[tuple[int, ...], object]]:
    """The destinations and the value of each segment that is sent next."""
    found = []
    for each in next_segments(outlets.values(), limit_bytes):
        ((value,),) = decoded_rows(bytes(each))
        found.append((parse_segment(each, 0).destinations, value))
    return found


def test_a_segment_for_several_tasks_is_sent_once() -> None:
    """It is addressed to the tasks of the peer only."""
    outlets = outlets_of(1, 2)
    put(outlets, tuples([8, 1, 2, 9], b"all"))
    put(outlets, tuples([2], b"one"))
    assert sent(outlets) == [((1, 2), b"all"), ((2,), b"one")]


def test_a_task_without_credit_gets_its_copy_later() -> None:
    """Fast tasks do not wait for a slow one."""
    outlets = outlets_of(1, 2, window_bytes=100)
    put(outlets, tuples([2], b"x" * 60))
    put(outlets, tuples([1, 2], b"all"))
    assert sent(outlets) == [((1,), b"all"), ((2,), b"x" * 60)]
    assert sent(outlets) == []
    assert outlets[2].window is not None
    outlets[2].window.release(outlets[2].window.sent_bytes)
    assert sent(outlets) == [((2,), b"all")]


def test_the_credit_spent_equals_the_bytes_that_the_receiver_releases() -> None:
    """A segment with fewer destinations is shorter; spending its former length would lose credit."""
    outlets = outlets_of(1, 2)
    put(outlets, tuples([7, 8, 9, 1, 2], b"all"))
    (only,) = next_segments(outlets.values(), 1000)
    assert len(only) < len(tuples([7, 8, 9, 1, 2], b"all"))
    assert {outlet.window.sent_bytes for outlet in outlets.values() if outlet.window} == {len(only)}


def test_a_large_segment_is_sent_alone() -> None:
    """Joined frames stay near the limit; no segment is too large to be sent."""
    outlets = outlets_of(1, 2)
    put(outlets, tuples([1], b"x" * 500))
    put(outlets, tuples([2], b"y" * 500))
    assert sent(outlets, limit_bytes=100) == [((1,), b"x" * 500)]
    assert sent(outlets, limit_bytes=100) == [((2,), b"y" * 500)]


@given(
    parts=st.lists(st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=3, unique=True), max_size=30),
    limit=st.integers(1, 400),
    window=st.integers(1, 400),
    data=st.data(),
)
def test_each_task_gets_each_segment_once_and_in_order(
    parts: list[list[int]], limit: int, window: int, data: st.DataObject
) -> None:
    """With any joins, limits and credit, no segment of a task is lost, repeated or overtaken."""
    outlets = outlets_of(1, 2, 3, window_bytes=window)
    for number, each in enumerate(parts):
        put(outlets, tuples(each, number))
    got: dict[int, list[object]] = {1: [], 2: [], 3: []}
    while any(outlet.queue for outlet in outlets.values()):
        for destinations, payload in sent(outlets, limit):
            for task_id in destinations:
                got[task_id].append(payload)
        released = data.draw(st.sets(st.sampled_from([1, 2, 3]), min_size=1))
        for task_id in released:
            credit = outlets[task_id].window
            assert credit is not None
            credit.release(credit.sent_bytes)
    for task_id, numbers in got.items():
        assert numbers == [number for number, each in enumerate(parts) if task_id in each]
