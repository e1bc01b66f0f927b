"""A profile as text, flame graph and speedscope file."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from heron.spi.task_profile import ProfiledStack, TaskProfile
from heron.spi.task_stacks import StackFrame
from heron_cli.client.profile_tree import LineTime, call_tree, function_times, line_times, summed_profile, user_times
from heron_cli.client.speedscope import speedscope_file
from heron_cli.commands.profile import profile as profile_command
from heron_cli.view.tasks.flame_graph import flame_graph
from heron_cli.view.tasks.profile_text import profile_lines

SVG = "{http://www.w3.org/2000/svg}"
FRAMES = (
    StackFrame("/engine/runner.py", 7, "BoltRunner.work", "engine"),
    StackFrame("/me/words.py", 12, "Count.process", "user"),
    StackFrame("/me/words.py", 14, "Count.process", "user"),
    StackFrame("/lib/json.py", 3, "loads", "library"),
    StackFrame("/engine/data_queue.py", 9, "DataIn.wait", "engine"),
)
STACKS = (
    ProfiledStack((0, 1), 2.0, 0.0),
    ProfiledStack((0, 2), 3.0, 0.5),
    ProfiledStack((0, 1, 3), 1.0, 0.0),
    ProfiledStack((0, 4), 0.0, 2.5),
    ProfiledStack((0, 1, 2), 0.5, 0.0),  # a recursion
)


def profile_of(*stacks: ProfiledStack, frames: tuple[StackFrame, ...] = FRAMES, other_s: float = 0.0) -> TaskProfile:
    lasted_s = sum(each.on_s + each.off_s for each in stacks) + other_s
    return TaskProfile("words", "count", 3, 1, 1, 77, "here", 0.0, lasted_s, 800, frames, stacks, other_on_s=other_s)


def parsed(document: str) -> ET.Element:
    return ET.fromstring(document)  # noqa: S314  # our own document


def test_the_times_of_tasks_are_summed_up_by_stack() -> None:
    """Each task numbers its frames itself. A stack that both have is one, and nothing of one task alone stays."""
    one = replace(profile_of(*STACKS[:2], other_s=0.25), task_id=4, began_at_s=9.0)
    other = profile_of(
        ProfiledStack((1, 0), 4.0, 1.0), ProfiledStack((1, 2), 0.0, 6.0), frames=FRAMES[1::-1] + FRAMES[4:]
    )
    found = summed_profile([one, other])
    named = [(tuple(found.frames[at] for at in each.frames), each.on_s, each.off_s) for each in found.stacks]
    assert named == [
        ((FRAMES[0], FRAMES[1]), 6.0, 1.0),
        ((FRAMES[0], FRAMES[4]), 0.0, 6.0),
        ((FRAMES[0], FRAMES[2]), 3.0, 0.5),
    ]
    assert len(set(found.frames)) == len(found.frames) == len(FRAMES)
    assert (found.lasted_s, found.samples, found.other_on_s) == (one.lasted_s + other.lasted_s, 1600, 0.25)
    assert (found.component, found.task_id, found.pid, found.host, found.began_at_s) == ("count", 0, 0, "", 0.0)
    assert json.loads(speedscope_file(found))["name"] == "words: count"


def test_a_sum_has_as_many_calls_as_the_profile_of_a_task() -> None:
    """64 tasks with different stacks would be 20 MB; the rare stacks are time without a stack."""
    frames = tuple(StackFrame("/me/words.py", line, "Count.process", "user") for line in range(600))
    profiles = [
        profile_of(
            ProfiledStack(tuple(range(600)), 3.0, 1.0), ProfiledStack((task, *range(600)), 1.0, 0.5), frames=frames
        )
        for task in range(100)
    ]
    found = summed_profile(profiles)
    assert sum(len(each.frames) for each in found.stacks) == 600 + 82 * 601
    assert found.stacks[0].on_s == 300.0
    assert (found.other_on_s, found.other_off_s) == (18.0, 9.0)


def test_calls_of_one_function_are_one_call_whatever_the_line() -> None:
    """A flame graph with a box for each line would hide the function."""
    root = call_tree(profile_of(*STACKS), on=True)
    assert root.total_s == 6.5
    (work,) = root.callees.values()
    assert work.total_s == 6.5
    (process,) = work.callees.values()
    assert {each.function.name: each.total_s for each in process.callees.values()} == {
        "loads": 1.0,
        "Count.process": 0.5,
    }
    assert root.depth() == 3
    assert call_tree(profile_of(*STACKS), on=False).total_s == 3.0


def test_functions_are_summed_with_their_busiest_line() -> None:
    """A recursion counts once in the time with calls."""
    times = {each.function.name: each for each in function_times(profile_of(*STACKS))}
    process = times["Count.process"]
    assert (process.self_s, process.total_s, process.line) == (5.5, 6.5, 14)
    assert (times["BoltRunner.work"].self_s, times["BoltRunner.work"].total_s) == (0.0, 6.5)
    assert "DataIn.wait" not in times
    assert user_times(profile_of(*STACKS)) == (6.5, 0.5)


def test_a_line_of_user_code_has_the_time_of_what_it_calls() -> None:
    """A line that waits is as guilty as one that computes. In a recursion, the innermost line counts."""
    frames = (*FRAMES[:2], replace(FRAMES[2], source="json.loads(text)"), *FRAMES[3:])
    assert line_times(profile_of(*STACKS, frames=frames)) == (
        LineTime("/me/words.py", 14, "Count.process", "json.loads(text)", 3.5, 0.5),
        LineTime("/me/words.py", 12, "Count.process", "", 3.0, 0.0),
    )
    assert line_times(profile_of(STACKS[3])) == ()
    lines = profile_lines(profile_of(*STACKS, frames=frames, other_s=0.5))
    table = lines[lines.index("lines of user code, share of the time:") + 1 :][:4]
    assert table[1].split()[:3] == ["40.0%", "35.0%", "5.0%"]
    assert table[1].endswith("/me/words.py, line 14, in Count.process")
    assert table[2].strip() == "json.loads(text)"
    assert table[3].split()[:3] == ["30.0%", "30.0%", "0.0%"]


def test_the_text_shows_user_code_apart_from_the_engine() -> None:
    """Shares are of the whole time, so that they can be compared."""
    lines = profile_lines(profile_of(*STACKS, other_s=0.5))
    assert lines[:3] == [
        "count/3: 10.0 s, 800 samples (pid 77 on here)",
        "on a processor: 70% of the time; in user code and what it calls: 65%",
        "waiting: 30% of the time; in user code and what it calls: 5%",
    ]
    user = lines[lines.index("user code, time on a processor:") + 2]
    assert user.split() == ["55.0%", "65.0%", "Count.process", "/me/words.py,", "line", "14"]
    assert lines[lines.index("engine, time on a processor:") + 1] == "  none"
    assert "loads" in lines[lines.index("libraries, time on a processor:") + 2]


def test_many_functions_are_summed_up() -> None:
    """The files have all of them."""
    frames = tuple(StackFrame("/me/words.py", line, f"f{line}", "user") for line in range(12))
    stacks = [ProfiledStack((index,), 1.0, 0.0) for index in range(12)]
    assert "  … 2 more functions, 16.7% of the time themselves" in profile_lines(profile_of(*stacks, frames=frames))


def test_a_profile_without_samples_has_no_functions() -> None:
    """A process can be stopped for all of the time."""
    assert "on a processor: 0% of the time; in user code and what it calls: 0%" in profile_lines(profile_of())
    parsed(flame_graph(profile_of()))


def test_the_flame_graph_has_a_box_for_each_call_with_its_share() -> None:
    """Widths are proportional to time, and a callee lies above its caller."""
    root = parsed(flame_graph(profile_of(*STACKS)))
    boxes = {}
    for group in root.iter(f"{SVG}g"):
        title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        assert title is not None
        assert box is not None
        boxes[title.text] = (float(box.get("width", "")), float(box.get("y", "")), box.get("fill"))
    process = boxes["Count.process (/me/words.py): 6.500 s, 100.0%"]
    loads = boxes["loads (/lib/json.py): 1.000 s, 15.4%"]
    assert process[0] == pytest.approx(6.5 * loads[0], rel=0.01)
    assert process[1] > loads[1]
    assert process[2] != loads[2]
    assert "DataIn.wait (/engine/data_queue.py): 2.500 s, 83.3%" in boxes
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert "on a processor: 6.50 s" in texts
    assert "off a processor: it waits: 3.00 s" in texts


def test_hostile_names_cannot_break_the_graph() -> None:
    """Names come from user code: they may have markup, quotes and control characters."""
    evil = StackFrame("/me/<script>.py", 1, "f'\"]]><script>alert(1)</script>\x00\x1b", "user")
    profile = profile_of(ProfiledStack((0,), 1.0, 0.0), frames=(evil,))
    document = flame_graph(profile)
    assert "<script" not in document
    parsed(document)


def test_the_speedscope_file_has_both_kinds_of_time() -> None:
    """Samples and weights belong together, and a sample without time is left out."""
    document = json.loads(speedscope_file(profile_of(*STACKS)))
    on, off = document["profiles"]
    assert on["samples"] == [[0, 1], [0, 2], [0, 1, 3], [0, 1, 2]]
    assert on["weights"] == [2.0, 3.0, 1.0, 0.5]
    assert (on["endValue"], off["endValue"]) == (6.5, 3.0)
    assert document["shared"]["frames"][1] == {"name": "Count.process [user]", "file": "/me/words.py", "line": 12}
    assert (on["type"], on["unit"], on["startValue"]) == ("sampled", "seconds", 0)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--seconds", "0"), "0.0 is not in the range"),
        (("--seconds", "301"), "301.0 is not in the range"),
    ],
)
def test_wrong_times_are_refused(options: tuple[str, ...], expected: str) -> None:
    """Nobody looks at a profile of an hour, and it would cost the task all the time."""
    refused = CliRunner().invoke(profile_command, ["words", "3", *options])
    assert refused.exit_code == 2
    assert expected in refused.output


def test_a_folder_that_does_not_exist_is_refused_before_the_profile(tmp_path: Path) -> None:
    """The seconds of a profile would be lost."""
    refused = CliRunner().invoke(profile_command, ["words", "3", "--out", str(tmp_path / "none" / "words")])
    assert refused.exit_code != 0
    assert "is not a folder in which files can be written" in str(refused.exception)
