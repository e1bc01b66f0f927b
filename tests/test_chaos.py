"""The chaos tests: their plans, their checks of files, and a short run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from chaos.campaign import Campaign
from chaos.chaos_run import ChaosRun, kind_of
from chaos.fault_plan import COUNTS, Action, Kind, fault_plan
from chaos.flow import Flow
from chaos.memory import Memory, table, watch_memory
from chaos.oracle import Verdict, judge
from chaos.outcome import Outcome

ROOT = Path(__file__).resolve().parents[1]
SOAK_MINUTES = float(os.environ.get("HERON_SOAK_MINUTES", "10"))
MOST_GROWTH = 0.10


def test_the_same_seed_makes_the_same_plan() -> None:
    """A failed run can be repeated with the same faults at the same moments."""
    assert fault_plan(7, 600.0) == fault_plan(7, 600.0)
    assert fault_plan(7, 600.0) != fault_plan(8, 600.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_plan_has_every_kind_equally_often_alone_and_together(seed: int) -> None:
    """The plan must not leave out a kind of process."""
    plan = fault_plan(seed, 600.0)
    victims = Counter(victim.kind for fault in plan for victim in fault.victims)
    assert set(victims) == set(Kind)
    assert max(victims.values()) - min(victims.values()) <= 4  # a fault counts the same process once
    assert {fault.action for fault in plan} == set(Action)
    assert {len(fault.victims) for fault in plan} == {1, 2, 3}
    assert all(victim.index < COUNTS[victim.kind] for fault in plan for victim in fault.victims)
    assert all(0 < fault.at_s < 600 and bool(fault.stopped_s) is (fault.action is Action.STOP) for fault in plan)


def tag(line: int, part: int, *, life: int = 0, attempt: int = 0, spout: int = 0) -> int:
    return line | spout << 32 | part << 36 | life << 40 | attempt << 52


def write_tags(path: Path, *tags: int) -> None:
    path.write_bytes(b"".join(each.to_bytes(8, "little") for each in tags))


LINES = 4
WHOLE = tuple(tag(line, part) for line in range(LINES) for part in range(2))


def verdict(folder: Path, *journal: int, failed: tuple[int, ...] = (), lives: tuple[int, ...] = (0,)) -> Verdict:
    """Return the verdict for one spout with four lines, whose parts are in two journals."""
    (folder / "position-0").write_text(str(LINES))
    (folder / "lives-0").write_text("".join(f"{start} 0.5\n" for start in lives))
    write_tags(folder / "journal-0", *journal[:3])
    write_tags(folder / "journal-1", *journal[3:])
    write_tags(folder / "failed-0", *failed)
    return judge(folder)


def test_each_line_once_passes(tmp_path: Path) -> None:
    """No line is lost or duplicated."""
    assert verdict(tmp_path, *WHOLE) == Verdict(LINES, 0, 0, 0, 0, ())


def test_a_line_of_which_a_part_is_missing_is_lost(tmp_path: Path) -> None:
    """An early ack would produce such a line."""
    found = verdict(tmp_path, *WHOLE[:-1])
    assert (found.lost, found.strange) == (1, ("lost, as spout:line: 0:3",))


def test_a_part_that_came_again_after_its_tree_failed_is_explained(tmp_path: Path) -> None:
    """A loss replays all tuples in flight, including those that had arrived."""
    found = verdict(tmp_path, *WHOLE, tag(1, 0, attempt=1), failed=(tag(1, 0),))
    assert (found.by_failed_trees, found.by_lives, found.unexplained) == (1, 0, 0)


def test_a_part_that_came_again_is_explained_by_a_later_life_that_began_at_or_before_it(tmp_path: Path) -> None:
    """A spout continues from its stored position, which may be below its last line."""
    found = verdict(tmp_path, *WHOLE, tag(2, 0, life=1), tag(1, 0, life=1), lives=(0, 2))
    assert (found.by_failed_trees, found.by_lives, found.unexplained) == (0, 1, 1)


@pytest.mark.parametrize(
    "again",
    [tag(1, 0), tag(1, 0, attempt=1), tag(1, 0, attempt=2)],
    ids=["delivered twice", "replayed without a fail", "an attempt between is unknown"],
)
def test_a_part_that_came_again_without_a_reason_is_a_failure(tmp_path: Path, again: int) -> None:
    """Even at least once, a duplicate without a reason is an error of the engine."""
    found = verdict(tmp_path, *WHOLE, again, failed=(tag(2, 0),))
    assert (found.duplicates, found.unexplained) == (1, 1)
    assert "line 1 of spout 0" in found.strange[0]


def test_a_record_of_a_line_that_no_spout_made_is_a_failure(tmp_path: Path) -> None:
    """A damaged record is an error too."""
    found = verdict(tmp_path, *WHOLE, tag(LINES, 0), tag(0, 0, spout=3))
    assert found.strange == ("2 records of lines that no spout made",)


@pytest.mark.parametrize(("missing", "further", "wrong"), [(0, 0, 0), (1, 0, 1), (0, 1, 1)])
def test_counts_in_state_lie_between_parts_and_records(tmp_path: Path, missing: int, further: int, wrong: int) -> None:
    """A count below the parts of a key has lost state. A count above the records was not made by records."""
    counts = dict.fromkeys((line + part * 500 for line in range(LINES) for part in range(2)), 1)
    counts[1] += 1 + further  # the part was replayed
    counts[2] -= missing
    (tmp_path / "counts-5").write_text(json.dumps(counts))
    found = verdict(tmp_path, *WHOLE, tag(1, 0, attempt=1), failed=(tag(1, 0),))
    assert found.wrong == wrong
    assert found.passed is (not wrong)


def outcome(of: Verdict | None, left: tuple[str, ...], unasked: tuple[str, ...]) -> Outcome:
    chaos_run = ChaosRun(1)
    chaos_run.remove()
    campaign = Campaign(chaos_run, killed=Counter({Kind.SPOUT: 2}), unasked=list(unasked))
    campaign.recover_s[Kind.SPOUT] = [0.5, 0.7]
    return Outcome(1, 0.5, campaign, of, 2.0, left, ())


GOOD = Verdict(10, 0, 1, 2, 0, ())


@pytest.mark.parametrize(
    ("of", "left", "unasked", "passed"),
    [
        (GOOD, (), (), True),
        (None, (), (), False),
        (Verdict(10, 1, 0, 0, 0, ()), (), (), False),
        (Verdict(10, 0, 0, 0, 1, ()), (), (), False),
        (Verdict(10, 0, 0, 0, 0, ("acked twice",)), (), (), False),
        (GOOD, ("process 7",), (), False),
        (GOOD, (), ("c1/stmgr",), False),
    ],
    ids=["good", "no verdict", "lost", "unexplained", "strange", "left over", "replaced unasked"],
)
def test_an_outcome_passes_only_when_nothing_is_wrong(
    of: Verdict | None, left: tuple[str, ...], unasked: tuple[str, ...], *, passed: bool
) -> None:
    """The output names the error."""
    found = outcome(of, left, unasked)
    assert found.passed is passed
    document = json.loads(found.json())
    assert document["killed"]["spout"] == 2
    assert document["recover_s"] == {"spout": {"n": 2, "p50": 0.6, "max": 0.7}}
    assert document.get("duplicates") == (of.duplicates if of else None)


def test_a_task_has_passed_lines_when_it_has_handled_later_lines_of_every_spout(tmp_path: Path) -> None:
    """A bolt must have handled lines of both spouts; a spout handles only its own lines."""
    numbers = [1, 12, 20, 0, 0, 0, 0, 0]
    for task in ("split-0", "lines-1"):
        (tmp_path / f"flow-{task}").write_bytes(b"".join(each.to_bytes(8, "little") for each in numbers))
    flow = Flow(tmp_path)
    assert flow.has_passed("split-0", (11, 19))
    assert not flow.has_passed("split-0", (11, 20))
    assert flow.has_passed("lines-1", (100, 19))
    assert not flow.has_passed("split-1", (0, 0))


def test_kind_follows_from_the_name() -> None:
    """The plan selects victims by kind."""
    names = ("c1/lines-1", "c2/journal-8", "c0/executor", "c0/tmanager", "c2/stmgr", "c1/metricsmgr")
    kinds = ("SPOUT", "BOLT", "EXECUTOR", "TOPOLOGY_MANAGER", "STREAM_MANAGER", "METRICS_MANAGER")
    assert [kind_of(name).name for name in names] == list(kinds)


def test_memory_growth_is_the_largest_difference_from_the_first_value() -> None:
    """Growth counts in both directions: a value that falls later had not settled."""
    assert Memory("c1/stmgr", 1, (100.0, 104.0, 95.0)).growth == pytest.approx(-0.05)
    assert "c1/stmgr" in table([Memory("c1/stmgr", 1, (2.0**20,))])


def chaos(minutes: float, seed: int, *options: str) -> dict[str, object]:
    """Run the program; it must pass."""
    words = [sys.executable, "-m", "chaos", "--minutes", str(minutes), "--seed", str(seed), "--verbose", *options]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)  # noqa: T201  # shown with -s
    (line,) = done.stdout.splitlines()
    found: dict[str, object] = json.loads(line)
    return found


@pytest.mark.matrix
def test_a_topology_survives_chaos_without_losing_a_line() -> None:
    """Every kind of process dies within twenty seconds; `./dev chaos` and `./dev soak` do the same for minutes."""
    found = chaos(0.3, 1)
    assert found["lost"] == 0
    assert isinstance(found["lines"], int)
    assert found["lines"] > 100_000


@pytest.mark.matrix
def test_the_output_is_exact_after_chaos_and_updates() -> None:
    """Processes die within ten seconds, and one update changes the tasks; `./dev soak` does the same for minutes."""
    found = chaos(0.15, 1, "--mode", "effectively-once", "--updates", "--rate", "3000")
    assert [found[key] for key in ("lost", "doubled", "wrong", "out_of_order")] == [0, 0, 0, 0]
    assert found["mode"] == "effectively-once"
    assert isinstance(found["restores"], int)
    assert found["restores"] > 0
    assert sum(updates_of(found).values()) == 1


def updates_of(found: dict[str, object]) -> dict[str, int]:
    updates = found["updates"]
    assert isinstance(updates, dict)
    return updates


@pytest.mark.soak
@pytest.mark.timeout(SOAK_MINUTES * 60 + 600)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("options", ["--mode effectively-once", "--mode at-least-once", "--state"])
def test_minutes_of_chaos_and_updates_lose_nothing(options: str, seed: int) -> None:
    """Updates complete between and during faults."""
    found = chaos(SOAK_MINUTES, seed, *options.split(), "--updates", "--rate", "10000")
    assert found["lost"] == 0
    assert not found.get("wrong")
    assert updates_of(found)["complete"] > 0


@pytest.mark.soak
@pytest.mark.timeout(SOAK_MINUTES * 60 + 300)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_topology_survives_minutes_of_chaos_without_losing_a_line(seed: int) -> None:
    """The rate must be reached; otherwise the machine is too small for this test."""
    found = chaos(SOAK_MINUTES, seed)
    assert found["lost"] == 0
    assert isinstance(found["lines_per_s"], int)
    assert found["lines_per_s"] >= 20_000


@pytest.mark.soak
@pytest.mark.timeout(SOAK_MINUTES * 120 + 400)  # sampling many processes takes time
def test_no_process_grows_at_full_speed() -> None:
    """After a minute, the memory of each process stays within 10 % in each tenth of the time."""
    chaos_run = ChaosRun(0, journal=False)
    try:
        with chaos_run:
            memories = watch_memory(chaos_run, SOAK_MINUTES)
            chaos_run.stop_spouts()
            chaos_run.wait_for_end()
        assert chaos_run.remaining() == []
    finally:
        chaos_run.remove()
    print(table(memories))  # noqa: T201  # shown with -s
    grown = [f"{each.name} (process {each.pid})" for each in memories if abs(each.growth) > MOST_GROWTH]
    assert grown == [], table(memories)
    assert len({each.name for each in memories}) == len(memories), "a process was replaced"
