"""`heron health` on a real topology of known cost: the size, the numbers, and errors in one line."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox


OPTIMUM = 2.0 / 0.85
"""The tasks of ``split`` at the wanted utilisation: 100 lines/s of 20 ms each."""


def health(sandbox: Sandbox) -> dict[str, dict[str, Any]]:
    """Return the findings by diagnosis and subject."""
    words = ("--option", "period_s=3", "--option", "look_back_s=3", "--json")
    document = json.loads(sandbox.output_of("health", "costly", *words))
    assert document["failed"] == []
    return {f"{each['diagnosis']} {each['subject']}": each for each in document["findings"]}


def metric(sandbox: Sandbox, component: str, name: str) -> list[dict[str, Any]]:
    """Return the rows of one metric of a component's tasks."""
    return [row for row in sandbox.metrics("costly", component) if row["name"] == name]


def started(sandbox: Sandbox) -> HeronRun:
    """Start the topology; all of its tasks report rates."""
    run = sandbox.start("costly.py", "--set", "heron.metrics.export.s=0.25")
    sandbox.wait_for_state(run, "costly")
    run.until(lambda: all(has_rates(sandbox, each) for each in ("lines", "split", "count")), "rates")
    return run


def has_rates(sandbox: Sandbox, component: str) -> bool:
    """Whether the component's task has sent two records."""
    return any(row["rate_per_s"] for row in metric(sandbox, component, "task-time-s"))


@pytest.mark.pace
@pytest.mark.guarantee
def test_a_component_that_is_too_small_is_found_with_its_size(sandbox: Sandbox) -> None:
    """The known optimum is 2.4 tasks of `split`: it says three, or one more on a busy machine.

    Guarantee: `heron health` finds a component that is too small, with its size.
    """
    started(sandbox)
    shows_where_time_goes(sandbox)
    found = health(sandbox)
    finding = found["under-provisioned split"]
    split = finding["command"].partition("split:")[2].partition(" ")[0]
    assert OPTIMUM <= int(split) <= OPTIMUM + 2, finding
    (needed,) = re.findall(r"^split has to do ([\d.]+) ", finding["evidence"][0])
    assert 80.0 <= float(needed) <= 120.0, finding
    starved = max((each["confidence"] for name, each in found.items() if name.startswith("slow-host ")), default=0.0)
    count = found.get("under-provisioned count", {"confidence": 0.0})
    assert count["confidence"] <= starved, "only a host without processors makes it too small, and is named first"
    text = sandbox.output_of("health", "costly", "--option", "period_s=0.5", "--option", "look_back_s=0.5")
    assert text.startswith("topology costly, observed for ")
    sandbox.output_of("kill", "costly")  # what waits would take a busy machine minutes


def shows_where_time_goes(sandbox: Sandbox) -> None:
    """`split` is never without work; `lines` waits for its source nearly always, and says what waits there."""
    uses = {row["labels"]["use"]: row["rate_per_s"] or 0.0 for row in metric(sandbox, "split", "task-time-s")}
    assert sum(uses.values()) == pytest.approx(1.0, abs=0.2)
    assert uses["user-cpu"] + uses["user-blocked"] > 0.8
    spout = {row["labels"]["use"]: row["rate_per_s"] or 0.0 for row in metric(sandbox, "lines", "task-time-s")}
    assert spout["input"] > 0.5
    (backlog,) = metric(sandbox, "lines", "backlog")
    assert 0.0 <= backlog["value"] < 100.0


@pytest.mark.starts_nothing
def test_mistakes_are_one_line(sandbox: Sandbox) -> None:
    """The name is wrong, the policy is not installed, or an option is unknown."""
    assert "topology 'costly' is not running" in sandbox.output_of("health", "costly", code=2)
    assert "no health driver 'ds3' is installed" in sandbox.output_of("health", "costly", "--policy", "ds3", code=2)
    wrong = sandbox.output_of("health", "costly", "--option", "look_back=3", code=2)
    assert wrong.count("\n") == 1
    assert "look_back_s" in wrong
    assert "--option 'drain_s' is not KEY=VALUE" in sandbox.output_of("health", "costly", "--option", "drain_s", code=2)
