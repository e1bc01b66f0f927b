"""Renders the top functions of a profile for people, user code apart from the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heron.spi.task_profile import TaskProfile
from heron_cli.client.profile_tree import FunctionTime, LineTime, function_times, line_times, user_times
from heron_cli.view.text import columns

__all__ = ["profile_lines"]

_SHOWN = 10


def profile_lines(profile: TaskProfile) -> list[str]:
    """Return the lines: how much of the time was on a processor and in user code, lines of user code, functions."""
    on_s = sum(each.on_s for each in profile.stacks) + profile.other_on_s
    user_on_s, user_off_s = user_times(profile)
    lasted_s = profile.lasted_s or 1.0
    task, process = f"{profile.component}/{profile.task_id}", f"pid {profile.pid} on {profile.host}"
    own = "in user code and what it calls"
    lines = [
        f"{task}: {profile.lasted_s:.1f} s, {profile.samples} samples ({process})",
        f"on a processor: {on_s / lasted_s:.0%} of the time; {own}: {user_on_s / lasted_s:.0%}",
        f"waiting: {1 - on_s / lasted_s:.0%} of the time; {own}: {user_off_s / lasted_s:.0%}",
    ]
    lines += ["", "lines of user code, share of the time:", *_lines(line_times(profile)[:_SHOWN], lasted_s)]
    times = function_times(profile)
    for title, origins in (("user code", ("user",)), ("libraries", ("library",)), ("engine", ("engine",))):
        chosen = [each for each in times if each.function.origin in origins and each.self_s > 0]
        lines += ["", f"{title}, time on a processor:", *_table(chosen[:_SHOWN], lasted_s)]
        if len(chosen) > _SHOWN:
            rest_s = sum(each.self_s for each in chosen[_SHOWN:])
            lines.append(f"  … {len(chosen) - _SHOWN} more functions, {rest_s / lasted_s:.1%} of the time themselves")
    return lines


def _lines(times: Sequence[LineTime], lasted_s: float) -> Iterator[str]:
    if not times:
        yield "  none"
        return
    rows = [("  share", "on a processor", "waiting", "line")]
    for each in times:
        shares = (each.on_s / lasted_s, each.off_s / lasted_s)
        whole, on, off = f"  {sum(shares):6.1%}", f"{shares[0]:14.1%}", f"{shares[1]:7.1%}"
        rows.append((whole, on, off, f"{each.file}, line {each.line}, in {each.function}"))
    for number, line in enumerate(columns(rows)):
        yield line
        if number and times[number - 1].source:
            yield f"           {times[number - 1].source}"


def _table(times: list[FunctionTime], lasted_s: float) -> Iterator[str]:
    if not times:
        return iter(("  none",))
    rows = [("  itself", "with calls", "function", "busiest line")]
    rows += [
        (
            f"  {each.self_s / lasted_s:6.1%}",
            f"{each.total_s / lasted_s:10.1%}",
            each.function.name,
            f"{each.function.file}, line {each.line}",
        )
        for each in times
    ]
    return iter(columns(rows))
