"""A profile as a tree of calls, as sums over functions and over lines of user code; the sum of profiles. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from heron.spi.task_profile import ProfiledStack, TaskProfile
from heron.spi.task_stacks import StackFrame

__all__ = [
    "Call",
    "CalledFunction",
    "FunctionTime",
    "LineTime",
    "call_tree",
    "function_times",
    "line_times",
    "summed_profile",
    "user_times",
]

_MOST_CALLS = 50_000  # in all stacks of a sum, as in the profile of a task


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """A function, whichever of its lines was sampled; `origin` is ``user``, ``library`` or ``engine``."""

    name: str
    file: str
    origin: str


@dataclass(slots=True)
class Call:
    """A call in the tree, and the seconds in it with all that it calls."""

    function: CalledFunction
    total_s: float = 0.0
    callees: dict[CalledFunction, Call] = field(default_factory=dict)

    def depth(self) -> int:
        """The number of levels below this one."""
        return max((1 + each.depth() for each in self.callees.values()), default=0)


@dataclass(frozen=True, slots=True)
class FunctionTime:
    """The seconds on a processor in a function: in its own lines, and with all that it calls; and its busiest line."""

    function: CalledFunction
    self_s: float
    total_s: float
    line: int


@dataclass(frozen=True, slots=True)
class LineTime:
    """The seconds in a line of user code and in what it calls, on a processor and off it; `source` may be ""."""

    file: str
    line: int
    function: str
    source: str
    on_s: float
    off_s: float


def call_tree(profile: TaskProfile, *, on: bool) -> Call:
    """The calls of a profile on a processor, or off it; the root stands for the thread."""
    root = Call(CalledFunction("all", "", "engine"))
    for stack in profile.stacks:
        seconds = stack.on_s if on else stack.off_s
        if seconds <= 0:
            continue
        root.total_s += seconds
        call = root
        for function in _functions(profile, stack):
            call = call.callees.setdefault(function, Call(function))
            call.total_s += seconds
    return root


def function_times(profile: TaskProfile) -> tuple[FunctionTime, ...]:
    """Every function with time on a processor, those with the most time in their own lines first."""
    own: dict[CalledFunction, dict[int, float]] = {}
    totals: dict[CalledFunction, float] = {}
    lines: dict[CalledFunction, dict[int, float]] = {}
    for stack in profile.stacks:
        if not stack.on_s or not stack.frames:
            continue
        for frame in {_function(each): each for each in _frames(profile, stack)}.values():  # recursion counts once
            function = _function(frame)
            totals[function] = totals.get(function, 0.0) + stack.on_s
            of_line = lines.setdefault(function, {})
            of_line[frame.line] = of_line.get(frame.line, 0.0) + stack.on_s
        innermost = profile.frames[stack.frames[-1]]
        of_own = own.setdefault(_function(innermost), {})
        of_own[innermost.line] = of_own.get(innermost.line, 0.0) + stack.on_s
    found = [
        FunctionTime(function, sum(own.get(function, {}).values()), total_s, _busiest(lines[function]))
        for function, total_s in totals.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.self_s, -each.total_s, each.function.name)))


def line_times(profile: TaskProfile) -> tuple[LineTime, ...]:
    """Every line of user code with time, those with the most first.

    A line counts where it is the innermost one of user code, so no time counts twice.
    """
    times: dict[StackFrame, list[float]] = {}
    for stack in profile.stacks:
        innermost = next((each for each in reversed([*_frames(profile, stack)]) if each.origin == "user"), None)
        if innermost is not None:
            of_line = times.setdefault(innermost, [0.0, 0.0])
            of_line[0] += stack.on_s
            of_line[1] += stack.off_s
    found = [LineTime(each.file, each.line, each.function, each.source, *of) for each, of in times.items()]
    return tuple(sorted(found, key=lambda each: (-each.on_s - each.off_s, each.file, each.line)))


def user_times(profile: TaskProfile) -> tuple[float, float]:
    """The seconds in user code and what it calls, on a processor and off it."""
    stacks = [each for each in profile.stacks if any(f.origin == "user" for f in _frames(profile, each))]
    return sum(each.on_s for each in stacks), sum(each.off_s for each in stacks)


def summed_profile(profiles: Sequence[TaskProfile]) -> TaskProfile:
    """The sum of profiles of one component, of at least one task. What only one task has is 0 or "" in it.

    `lasted_s` and all other times are those of the tasks together. Rare stacks are left out as in that of a task.
    """
    numbers: dict[StackFrame, int] = {}
    times: dict[tuple[int, ...], list[float]] = {}
    for profile in profiles:
        of_frame = [numbers.setdefault(each, len(numbers)) for each in profile.frames]
        for stack in profile.stacks:
            of_stack = times.setdefault(tuple(of_frame[index] for index in stack.frames), [0.0, 0.0])
            of_stack[0] += stack.on_s
            of_stack[1] += stack.off_s
    kept, other, calls = [], [0.0, 0.0], 0
    for frames, (on_s, off_s) in sorted(times.items(), key=lambda item: -sum(item[1])):
        calls += len(frames)
        if calls <= _MOST_CALLS:
            kept.append(ProfiledStack(frames, on_s, off_s))
        else:
            other[0] += on_s
            other[1] += off_s
    return TaskProfile(
        profiles[0].topology,
        profiles[0].component,
        task_id=0,
        container_id=0,
        incarnation=0,
        pid=0,
        host="",
        began_at_s=min(each.began_at_s for each in profiles),
        lasted_s=sum(each.lasted_s for each in profiles),
        samples=sum(each.samples for each in profiles),
        frames=tuple(numbers),
        stacks=tuple(kept),
        other_on_s=sum(each.other_on_s for each in profiles) + other[0],
        other_off_s=sum(each.other_off_s for each in profiles) + other[1],
    )


def _frames(profile: TaskProfile, stack: ProfiledStack) -> Iterator[StackFrame]:
    return (profile.frames[index] for index in stack.frames)


def _functions(profile: TaskProfile, stack: ProfiledStack) -> Iterator[CalledFunction]:
    return map(_function, _frames(profile, stack))


def _function(frame: StackFrame) -> CalledFunction:
    return CalledFunction(frame.function, frame.file, frame.origin)


def _busiest(seconds_by_line: dict[int, float]) -> int:
    return max(seconds_by_line, key=lambda line: (seconds_by_line[line], -line))
