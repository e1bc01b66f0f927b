"""Unmodified programs for heronpy, with real processes."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

TOPOLOGIES = Path(__file__).parents[1] / "topologies"
NUMBERS = set(range(100))
ODD = {number for number in NUMBERS if number % 2}
EMITS = len(NUMBERS) + len(ODD) + 2  # 7 fails once, and comes again on both streams

Facts: TypeAlias = "dict[int, dict[str, object]]"


def facts(run: HeronRun, component: str) -> Facts:
    """Return the records of a component's tasks, by task id."""
    found = run.out.glob(f"{component}-*.json")
    return {int(path.stem.rpartition("-")[2]): json.loads(path.read_bytes()) for path in sorted(found)}


def listed(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def numbers(run: HeronRun, component: str, source: str) -> dict[int, set[object]]:
    """Return the numbers of a stream that its tasks have received."""
    seen = {}
    for task, values in facts(run, component).items():
        rows = values["seen"]
        assert isinstance(rows, dict)
        seen[task] = {row[0] for row in rows.get(source, ())}
    return seen


def together(seen: dict[int, set[object]]) -> set[object]:
    return set().union(*seen.values())


def in_windows(run: HeronRun, component: str) -> set[object]:
    ((_, values),) = facts(run, component).items() or [(0, {"windows": []})]
    return {number for window in listed(values["windows"]) for number in listed(listed(window)[1])}


def all_is_seen(run: HeronRun) -> bool:
    """Return whether every tree is complete, and every bolt has recorded every number."""
    ((_, spout),) = facts(run, "numbers").items() or [(0, {"acked": []})]
    acked = listed(spout["acked"])
    expected = dict.fromkeys(("shuffled", "all", "lowest", "global", "none", "near"), "count:extra")
    expected |= {"fields": "count:default", "grouped": "count:default", "named": "count:default"}
    expected |= {"count": "numbers:default", "stateful": "numbers:default"}
    return (
        {each for each in acked if isinstance(each, int)} == NUMBERS
        and len(acked) == EMITS - 1
        and all(together(numbers(run, name, source)) == NUMBERS for name, source in expected.items())
        and together(numbers(run, "odd", "numbers:odd")) == ODD
        and all(in_windows(run, name) == NUMBERS for name in ("sliding", "tumbling"))
    )


@pytest.fixture
def ran(sandbox: Sandbox) -> HeronRun:
    """The program of every call, run to the last number; then paused, resumed and stopped."""
    program = TOPOLOGIES / "heronpy_calls.py"
    run = sandbox.start(program, args=("old-calls", str(sandbox.root / "out0")))
    run.until(lambda: all_is_seen(run), "every number everywhere")
    for command in ("deactivate", "activate"):
        sandbox.output_of(command, "old-calls")
        run.until(lambda: command in listed(spout_facts(run)["calls"]), command)  # noqa: B023  # the loop waits here
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 130, run.all_output
    return run


def spout_facts(run: HeronRun) -> dict[str, object]:
    """Return the records of the spout."""
    (only,) = facts(run, "numbers").values()
    return only


@pytest.mark.guarantee
def test_a_program_with_every_call_runs_unchanged(ran: HeronRun, sandbox: Sandbox) -> None:
    """Such programs must run without a change.

    Guarantee: a program for heronpy runs unchanged.
    """
    spout = spout_facts(ran)
    assert (spout["failed"], spout["mine"]) == ([7], [1, {"a": None}])
    assert listed(spout["calls"])[-3:] == ["deactivate", "activate", "close"]
    (odd_task,) = facts(ran, "odd")
    assert spout["odd_tasks"] == [[odd_task]] * (len(ODD) + 1), "7 is emitted again"
    assert spout["hooked"] == EMITS
    _groupings_hold(ran)
    _context_answers(ran)
    _check_hooks(ran)
    _metrics_and_logs_are_there(sandbox)


def _groupings_hold(run: HeronRun) -> None:
    first, second = numbers(run, "count", "numbers:default").values()
    assert not first & second
    assert [each == NUMBERS for each in numbers(run, "all", "count:extra").values()] == [True, True]
    for name in ("lowest", "global"):
        assert [len(each) for _, each in sorted(numbers(run, name, "count:extra").items())] == [len(NUMBERS), 0]
    even, odd = (each for _, each in sorted(numbers(run, "grouped", "count:default").items()))
    assert (even, odd) == (NUMBERS - ODD, ODD)
    assert [len(each) for _, each in sorted(numbers(run, "named", "count:default").items())] == [0, len(NUMBERS)]
    spans = {name: listed(facts(run, name).popitem()[1]["windows"]) for name in ("sliding", "tumbling")}
    assert listed(spans["sliding"][0])[0] == pytest.approx(0.4)
    assert listed(spans["tumbling"][0])[0] == pytest.approx(0.3)
    ((_, stateful),) = facts(run, "stateful").items()
    assert stateful["state"] == {"begun": True}


def _context_answers(run: HeronRun) -> None:
    for count in facts(run, "count").values():
        assert (count["name"], count["component"], count["cluster"]) == ("old-calls", "count", str(run.out))
        assert count["tasks"] == sorted(facts(run, "count"))
        assert count["sources"] == [["numbers", "default"]]
        assert count["grouped"] == [["count", "default"], ["numbers", "default"]]


def _check_hooks(run: HeronRun) -> None:
    ((_, spout),) = facts(run, "hook-numbers").items()
    assert (spout["spout_ack"], spout["spout_fail"]) == (EMITS - 1, 1)
    bolts = facts(run, "hook-count").values()
    assert sum(int(str(each.get("bolt_fail", 0))) for each in bolts) == 1
    assert sum(int(str(each["bolt_ack"])) for each in bolts) >= len(NUMBERS)
    assert sum(int(str(each["bolt_execute"])) for each in bolts) >= len(NUMBERS) + 1


def _metrics_and_logs_are_there(sandbox: Sandbox) -> None:
    metrics = sandbox.log_text("metrics-1.jsonl")
    plain = ["count", "mean", "largest", "last", "answer"]
    keyed = ["by_parity/odd", "by_parity/never", "mean_by_parity/even", "largest_by_parity/odd", "last_by_parity/odd"]
    for name in (*plain, *keyed, "__auto__/processed", "__auto__/doubled"):
        assert f'"user/{name}"' in metrics
    logs = sandbox.log_text("count-*.log")
    for line in ("logged at None", "logged at info", "logged at warn", "logged at error", "logged by the logger"):
        assert line in logs


def test_a_derived_topology_runs_unchanged(sandbox: Sandbox) -> None:
    """A derived topology class, at most once, over two containers, with components from another file."""
    run = sandbox.start(TOPOLOGIES / "heronpy_class.py", args=(str(sandbox.root / "out0"),))

    def seen() -> bool:
        found = facts(run, "seen")
        return len(found) == 2 and (
            together(numbers(run, "seen", "numbers:default")) == NUMBERS
            and all(each == ODD for each in numbers(run, "seen", "numbers:odd").values())
        )

    run.until(seen, "every number")
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 130, run.all_output
    assert spout_facts(run)["failed"] == []


@pytest.mark.starts_nothing
def test_a_refused_program_starts_nothing(sandbox: Sandbox) -> None:
    """The error names the refused use and its line, before any process starts."""
    program = sandbox.root / "old_streamlet.py"
    program.write_text("from heronpy.dsl.builder import Builder\n\nBuilder()\n", encoding="utf-8")
    run = sandbox.run(program)
    assert run.process.returncode == 2, run.all_output
    assert run.stderr == (
        f"heron: error: {program}:3: heronpy.dsl.builder.Builder: the package was renamed; "
        "import heronpy.streamlet\n    Builder()\n"
    )


def word_counts(run: HeronRun) -> dict[str, int]:
    """Return the counts that all tasks have written last."""
    return {word: int(str(count)) for found in facts(run, "counts").values() for word, count in found.items()}


def test_a_stateful_program_runs_unchanged_and_its_counts_survive_deaths(sandbox: Sandbox) -> None:
    """The state dictionaries of spout and bolt return to the same checkpoint."""
    run = sandbox.start(TOPOLOGIES / "heronpy_stateful.py", args=("old-counts", str(sandbox.root / "out0")))

    run.until(lambda: sum(word_counts(run).values()) > 0, "counts")
    for component in ("count_bolt", "word_spout"):
        restores = sandbox.checkpoints("old-counts")["restores"]
        run.grows(lambda: sandbox.checkpoints("old-counts")["complete"], "a checkpoint")
        run.processes("instance", f"{component}-")[0].kill()
        run.until(lambda: sandbox.checkpoints("old-counts")["restores"] > restores, "a restore")  # noqa: B023  # it waits here
    of_each = 2 * 4000 // 5  # two spout tasks, five words
    words = ("hello", "bye", "good", "bad", "heron")
    run.until(lambda: sum(word_counts(run).values()) >= 2 * 4000, "every word")
    run.grows(lambda: sandbox.checkpoints("old-counts")["complete"], "checkpoints after the last word", by=1)
    assert word_counts(run) == dict.fromkeys(words, of_each)
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 130, run.all_output
