"""The health manager of a real topology: the plan changes by itself, and once, also when the manager is killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox


POLICY = "{driver: ds2, period_s: 1, look_back_s: 2}"
RAISED = "lines:topology.max.spout.pending=999"
OPTIMUM = 3
"""120 lines/s of 20 ms each are 2.4 tasks, or 2.8 at the wanted utilisation."""


def settings(**section: object) -> tuple[str, ...]:
    """The options that switch the health manager on. The bolt looks like a slow service, so doubt is allowed."""
    values = {"policies": f"[{POLICY}]", "cool_down_s": 2, "least_confidence": 0.3, **section}
    return tuple(word for key, value in values.items() for word in ("--set", f"health.{key}={value}"))


def history(sandbox: Sandbox, *words: str) -> dict[str, Any]:
    """The records, after a further word."""
    document: dict[str, Any] = json.loads(sandbox.output_of("health", "waiting", *(words or ("history",)), "--json"))
    return document


def decided(sandbox: Sandbox, run: HeronRun, text: bytes) -> Path:
    """Wait until the records contain a text; return the file of the node."""
    node = sandbox.home / ".heron" / "state" / "health" / "waiting"
    run.until(lambda: node.exists() and text in node.read_bytes(), f"{text!r} in the records")
    return node


def updates(records: dict[str, Any]) -> list[dict[str, Any]]:
    """The decisions to change the plan that were begun, oldest first."""
    return [each for each in records["decisions"] if each["base"] and each["state"] != "abandoned"]


def tasks_of(sandbox: Sandbox, component: str) -> int:
    """The number of tasks that run."""
    status = sandbox.status("waiting")
    return sum(each["component"] == component and each["state"] == "running" for each in status["tasks"])


def finished(run: HeronRun) -> None:
    """End the stream; every line arrived once, though tasks were added."""
    (run.out / "stop").touch()
    counts = run.finished().components
    assert counts["split"].executed == counts["lines"].emitted > 0
    assert counts["count"].executed == counts["split"].emitted == 2 * counts["lines"].emitted


@pytest.mark.pace
@pytest.mark.guarantee
def test_the_plan_changes_by_itself_and_a_killed_manager_repeats_nothing(sandbox: Sandbox) -> None:
    """The manager is killed as soon as its decision is recorded, before or while it carries it out.

    Guarantee: the health manager sizes a topology by itself, and a killed one repeats nothing.
    """
    run = sandbox.start("waiting.py", *settings(mode="act"))
    node = decided(sandbox, run, b'"state":"started"')
    run.the("health").kill()
    decided(sandbox, run, b'"state":"effective"')
    done = updates(history(sandbox))
    assert len({each["base"] for each in done}) == len(done), "no plan was changed twice"
    assert [each["base"] for each in done[1:]] == [each["target"] for each in done[:-1]], "nobody else changed it"
    assert done[-1]["target"].encode() in (node.parents[1] / "packingplans" / "waiting").read_bytes()
    assert OPTIMUM <= tasks_of(sandbox, "split") <= OPTIMUM + 1
    finished(run)


@pytest.mark.pace
def test_more_tuples_are_in_flight_by_itself(sandbox: Sandbox) -> None:
    """The spout waits for acks, and no bolt is busy: the limit is raised while it runs, and the rate grows."""
    configured = "--set", "topology.reliability.mode=ATLEAST_ONCE", "--set", "topology.max.spout.pending=1"
    bounded = settings(mode="act", components="{split: {max: 2}}")
    run = sandbox.start("waiting.py", *configured, *bounded, args=("--split", "2"))
    decided(sandbox, run, b'"state":"effective"')
    first = next(each for each in history(sandbox)["decisions"] if each["state"] == "effective")
    assert first["diagnosis"]["name"] == "too-few-pending"
    (most,) = first["action"]["settings"]["lines"].values()
    assert 1 < most <= 4
    status = json.loads(sandbox.output_of("update", "waiting", "--runtime-config", RAISED, "--dry-run", "--json"))
    assert [(each["before"], each["after"]) for each in status["changes"]] == [(most, 999)]
    finished(run)


@pytest.mark.pace
def test_advice_waits_for_a_person(sandbox: Sandbox) -> None:
    """The manager has the read-only key and changes nothing; `approve` carries its advice out, once."""
    run = sandbox.start("waiting.py", *settings())
    decided(sandbox, run, b'"parallelism":{"split"')
    records = history(sandbox)
    assert (records["mode"], tasks_of(sandbox, "split")) == ("advise", 1)
    number = next(str(each["number"]) for each in records["decisions"] if each["action"]["parallelism"])
    assert "only advice can be approved" not in sandbox.output_of("health", "waiting", "approve", number)
    assert tasks_of(sandbox, "split") >= OPTIMUM
    again = sandbox.output_of("health", "waiting", "approve", number, code=2)
    assert "only advice can be approved" in again
    assert history(sandbox, "pause")["paused"]
    assert not history(sandbox, "resume")["paused"]
    assert "has no decision 99" in sandbox.output_of("health", "waiting", "approve", "99", code=2)
    assert "`approve` needs the ID" in sandbox.output_of("health", "waiting", "approve", code=2)
    finished(run)


@pytest.mark.pace
def test_key_groups_move_from_a_busy_task_to_an_idle_one(sandbox: Sandbox) -> None:
    """Nearly all keys belong to one of two tasks, which cannot follow. The two have the same load afterwards."""
    marks = {"high": 65_536, "low": 32_768}  # bytes: back pressure comes within seconds
    words = [f"engine.heron.stmgr.{name}.watermark.bytes={size}" for name, size in marks.items()]
    run = sandbox.start("skewed.py", *settings(mode="act"), *(word for each in words for word in ("--set", each)))
    node = sandbox.home / ".heron" / "state" / "health" / "skewed"
    run.until(lambda: node.exists() and b'"state":"effective"' in node.read_bytes(), "an effective decision")
    records = json.loads(sandbox.output_of("health", "skewed", "history", "--json"))
    moved = [each for each in records["decisions"] if each["action"]["kind"] == "rebalance"]
    assert [each["diagnosis"]["name"] for each in moved[:1]] == ["data-skew"]
    assert moved[-1]["state"] == "effective"
    planned = json.loads(sandbox.output_of("update", "skewed", "--rebalance", "work", "--dry-run", "--json"))
    loads = [each["now_per_s"] for each in planned["loads"]]
    assert max(loads) < 1.5 * min(loads)
    (run.out / "stop").touch()
    counts = run.finished().components
    assert counts["work"].executed == counts["events"].emitted > 0
