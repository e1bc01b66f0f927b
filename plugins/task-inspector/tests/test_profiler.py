"""Profiles of a task: time on and off a processor by stack, within bounds."""

from __future__ import annotations

import linecache
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from heron.clock import monotonic_s, thread_cpu_clock
from heron.errors import RemoteProtocolError
from heron.spi.inspected_task import InspectedTask, TaskIdentity
from heron.spi.task_profile import ProfiledStack, TaskProfile, decode_profile, encode_profile
from heron_task_inspector.profiler import StackTimes, profile_of

pytestmark = pytest.mark.leaks_nothing

CODE = sys._getframe().f_code
OUTER, INNER, LEAF = ((CODE, line, "words") for line in (1, 2, 3))


def test_a_sample_counts_for_the_time_since_the_last_one() -> None:
    """On a busy machine samples come late; each then stands for more."""
    times = StackTimes()
    times.add((OUTER, INNER), 0.01, 0.004)
    times.add((OUTER, INNER), 0.03, 0.05)  # the two clocks are not read at the same instant
    times.add((OUTER, LEAF), 0.02, -0.001)
    frames, stacks, other = times.most()
    assert [each.line for each in frames] == [1, 2, 3]
    assert stacks == (ProfiledStack((0, 1), 0.034, 0.006), ProfiledStack((0, 2), 0.0, 0.02))
    assert other == (0.0, 0.0)
    assert times.samples == 3
    assert times.lasted_s == pytest.approx(0.06)


def test_the_stacks_with_the_most_time_stay_when_there_are_too_many() -> None:
    """The answer has a bounded size; what is left out is still part of the sum."""
    times = StackTimes()
    times.add((OUTER, INNER), 0.01, 0.01)
    times.add((OUTER, LEAF), 0.03, 0.01)
    frames, stacks, other = times.most(calls=3)
    assert [each.line for each in frames] == [1, 3]
    assert [each.frames for each in stacks] == [(0, 1)]
    assert other == (0.01, 0.0)


def test_a_profile_shows_where_the_main_thread_is() -> None:
    """It samples while the main thread computes and while it waits."""
    task = InspectedTask(TaskIdentity("t", "count", 3))
    with ThreadPoolExecutor(1) as question:
        asked = question.submit(profile_of, task, 0.5, threading.Event())
        until_s = monotonic_s() + 0.25
        while monotonic_s() < until_s:
            sum(range(100))
        profile = asked.result(60)
    assert (profile.component, profile.task_id) == ("count", 3)
    assert profile.samples > 5
    assert profile.lasted_s >= 0.499  # whenever its thread begins
    own = [
        each
        for each in profile.stacks
        if any(
            profile.frames[index].function == test_a_profile_shows_where_the_main_thread_is.__name__
            for index in each.frames
        )
    ]
    sources = [(each.line, each.source) for each in profile.frames if each.file == __file__]
    assert sources == [(line, linecache.getline(__file__, line).strip()) for line, _ in sources]
    assert all(each.source == "" for each in profile.frames if each.origin != "user")
    assert sum(each.on_s for each in own) > 0.02
    assert sum(each.off_s for each in own) > 0.02


def test_the_clock_of_a_thread_counts_its_processor_time() -> None:
    """It stands still while the thread waits."""
    clock = thread_cpu_clock(threading.get_ident())
    before_s = clock()
    while clock() == before_s:
        pass
    assert 0 < clock() - before_s < 10


def test_a_profile_with_an_unknown_frame_is_refused() -> None:
    """A viewer would fail at it much later."""
    profile = TaskProfile("wc", "count", 3, 1, 1, 77, "here", 0.0, 1.0, 1, (), (ProfiledStack((0,), 1.0, 0.0),))
    with pytest.raises(RemoteProtocolError, match="a frame that is not in its list of 0"):
        decode_profile(encode_profile(profile))
    with pytest.raises(RemoteProtocolError, match="a profile of 2 bytes cannot be read"):
        decode_profile(b"{}")
