"""Records that always fail: the engine replays them, and exactly they become dead letters."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

NUMBERS, FAILURES = 2000, 3
POISON = list(range(0, NUMBERS, 100))


def check_letters(run: HeronRun) -> None:
    """Exactly the poison is given up, with its reason; everything else is acked."""
    for source in ("rows", "blocks"):
        (outcomes,) = run.results(source).values()
        settled: list[object] = [NUMBERS - len(POISON), POISON]
        assert outcomes == settled, source
    letters = [row for rows in run.results("letters").values() for row in rows]
    expected = [[[each, str(each)], each, FAILURES, "check_rows", f"ValueError: poison {each}"] for each in POISON]
    assert sorted(letters) == expected
    (file,) = run.home.glob(".heron/logs/poisoned-*/**/dead-letters-*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted((int(each["tup_id"]), each["failures"], each["component"], each["error"]) for each in lines) == [
        (each, FAILURES, "check_blocks", f"ValueError: poison {each}") for each in POISON
    ]
    assert all("raise ValueError(message)" in each["trace"] and each["spout"] == "blocks" for each in lines)


@pytest.mark.guarantee
def test_exactly_the_poison_becomes_dead_letters(sandbox: Sandbox) -> None:
    """Rows and columns, two bolts away from their spouts.

    Guarantee: records that always fail become dead letters with their reason, and no other record does.
    """
    run = sandbox.run("poisoned.py")
    run.finished()
    check_letters(run)
    listed = json.loads(sandbox.output_of("dead-letters", "poisoned", "list", "--json"))
    assert sorted(int(each["tup_id"]) for each in listed) == POISON
    for source in ("rows", "blocks"):
        times = {number: count for rows in run.results(f"check_{source}").values() for number, count in rows}
        assert len(times) == NUMBERS
        assert {times[each] for each in POISON} == {3}
        assert {each for each, count in times.items() if count == 2} == {7, 1007}


def test_a_process_that_dies_makes_no_dead_letters_of_its_neighbours(sandbox: Sandbox) -> None:
    """Bolts die as often as a record may fail; lost trees are replayed, and do not count."""
    run = sandbox.start("poisoned.py", args=("--pause", "1.0"))
    run.until((sandbox.home / ".heron" / "state" / "pplans" / "poisoned").exists, "its topology manager leads")
    for _ in range(3):
        for name in ("pass_rows", "check_blocks"):
            executed = sandbox.executed("poisoned", name)
            run.processes("instance", f"/{name}-")[0].send_signal(signal.SIGKILL)
            run.until(lambda: sandbox.executed("poisoned", name) > executed, f"{name} works again")  # noqa: B023
    (run.out / "hurry").touch()
    run.finished()
    check_letters(run)


def test_stored_dead_letters_are_processed_after_the_bolt_was_mended(sandbox: Sandbox) -> None:
    """`heron dead-letters` replays them in the running topology, and drops others after its end."""
    run = sandbox.start("poisoned.py", args=("--wait", "1"))
    words = ("dead-letters", "poisoned")

    def stored() -> list[str]:
        return [each["id"] for each in json.loads(sandbox.output_of(*words, "list", "-n", "100", "--json"))]

    run.until((sandbox.home / ".heron" / "state" / "pplans" / "poisoned").exists, "its topology manager leads")
    run.until(lambda: len(stored()) == len(POISON), "all poison is given up")
    (run.out / "mended").touch()
    first, *others = stored()
    assert sandbox.output_of(*words, "replay", first) == "1 of 1 dead letter emitted again\n"
    assert "no dead letter '1-1'" in sandbox.output_of(*words, "replay", "1-1", code=2)
    done = json.loads(sandbox.output_of(*words, "replay", *others[:-1], "--json"))
    assert (len(done["done"]), done["left"]) == (len(POISON) - 2, {})
    run.until(lambda: stored() == others[-1:], "their trees are complete")
    (run.out / "end").touch()
    run.finished()
    assert "poisoned" in sandbox.output_of(*words, "replay", "--all", code=2)
    problem, *_ = json.loads(sandbox.output_of("explain", "poisoned", "--json"))["problems"]
    assert problem["kind"] == "poisoned"
    assert "check_blocks fails 1 record of blocks each time, at poisoned.py:" in problem["what"]
    assert problem["command"] == "heron dead-letters poisoned list"
    assert sandbox.output_of(*words, "drop", "--all", "--yes") == "1 of 1 dead letter dropped\n"
    assert stored() == []
    times = {number: count for rows in run.results("check_blocks").values() for number, count in rows}
    # two tasks fail them, so the last letter is of any record
    counts = [times[each] for each in POISON]
    assert (counts.count(FAILURES), counts.count(FAILURES + 1)) == (1, len(POISON) - 1)


def test_effectively_once_a_dead_letter_is_part_of_the_checkpoint_once(sandbox: Sandbox) -> None:
    """Spout and bolt die, letters are processed again, and an update adds tasks: each record has one end."""
    run, words = sandbox.start("kept_poison.py"), ("dead-letters", "kept_poison")

    def stored() -> list[dict[str, Any]]:
        return list(json.loads(sandbox.output_of(*words, "list", "-n", "100000", "--json")))

    sandbox.wait_for_state(run, "kept_poison")
    for component in ("check", "numbers", "check"):
        before = len(stored())
        run.until(lambda: len(stored()) > before, "letters of a checkpoint are written")  # noqa: B023
        restores = sandbox.checkpoints("kept_poison")["restores"]
        run.processes("instance", f"{component}-")[0].send_signal(signal.SIGKILL)
        run.until(lambda: sandbox.checkpoints("kept_poison")["restores"] > restores, "a restore")  # noqa: B023
    (run.out / "mended").touch()
    again = [each["id"] for each in stored()[:3]]
    done = json.loads(sandbox.output_of(*words, "replay", *again, "--json"))
    assert (done["done"], done["left"]) == (sorted(again), {})
    run.until(lambda: not {each["id"] for each in stored()} & set(again), "a checkpoint has their effects")
    sandbox.update("kept_poison", "check:2")
    (run.out / "end").touch()
    run.finished()
    letters = stored()
    failed = [int(each["values"][0]) for each in letters]
    times = {int(str(number)): count for rows in run.results("check").values() for number, count in rows}
    assert set(times.values()) == {1}
    assert len(failed) == len(set(failed)) > 0
    assert not times.keys() & set(failed)
    assert sorted([*times, *failed]) == list(range(len(times) + len(failed)))
    for each in letters:
        error = "" if int(each["values"][0]) % 10 else f"ValueError: poison {each['values'][0]}"
        assert (each["spout"], each["component"], each["error"]) == ("numbers", "check", error)
