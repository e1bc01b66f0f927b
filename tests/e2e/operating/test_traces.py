"""`heron trace` on running topologies: it names the hop that takes the time."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from heron_testing.waiting import wait_until

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

COMPLETE = 15
HOPS = {"emit batch", "gateway", "wire", "outlet", "queue", "execute"}


def traced(sandbox: Sandbox, **arguments: int) -> HeronRun:
    """The topology with these arguments, running."""
    words = [word for name, value in arguments.items() for word in (f"--{name}", str(value))]
    run = sandbox.start("traced.py", args=tuple(words))
    run.until((run.out / "began").exists, "the spout runs")
    return run


def answer(sandbox: Sandbox, *options: str) -> dict[str, Any]:
    """What ``heron trace`` prints as JSON."""
    found: dict[str, Any] = json.loads(sandbox.output_of("trace", "traced", "--json", *options))
    return found


def complete_answer(sandbox: Sandbox) -> dict[str, Any]:
    """The same when some complete traces are there."""
    latest: dict[str, Any] = {}

    def enough() -> bool:
        latest.update(answer(sandbox, "--slowest"))
        return bool(latest["summary"]["traces"] >= COMPLETE)

    wait_until(enough, 60.0, "complete traces")
    return latest


def end(run: HeronRun) -> None:
    run.process.send_signal(signal.SIGINT)
    run.wait()


@pytest.mark.parametrize("acks", [0, pytest.param(1, marks=pytest.mark.guarantee)])
def test_the_time_in_a_slow_bolt_is_in_its_execution(sandbox: Sandbox, acks: int) -> None:
    """Nothing waits for it, because a line is emitted when the one before is done.

    Guarantee: `heron trace` names the hop that takes the time.
    """
    run = traced(sandbox, pause_ms=60, work_ms=50, acks=acks, alone=1)
    found = complete_answer(sandbox)
    summary = found["summary"]
    slowest_hop = max(summary["hops"], key=lambda each: each["p50_s"])
    assert (slowest_hop["component"], slowest_hop["kind"]) == ("work", "execute")
    assert slowest_hop["p50_s"] >= 0.05
    assert {each["kind"] for each in summary["hops"]} == (HOPS | {"ack"} if acks else HOPS)

    shown = found["shown"]
    assert shown["missing"] == 0
    assert shown["outcome"] == ("complete" if acks else "")
    steps = shown["steps"]
    assert {each["component"] for each in steps if each["kind"] == "execute"} == {"split", "work"}
    assert not any(each["is_estimate"] for each in steps)  # one host: all times are of one clock
    assert sum(each["critical_s"] for each in steps) == pytest.approx(shown["duration_s"], abs=0.002)
    wires = [sum(each["kind"] == "wire" for each in trace["steps"]) for trace in found["traces"]]
    assert max(wires) > 2 * 2  # some tuples went through the stream managers of both containers

    text = sandbox.output_of("trace", "traced", "--slowest")
    assert "the slowest trace" in text
    assert "execute" in text
    end(run)


def test_the_time_before_a_busy_bolt_is_in_its_queue(sandbox: Sandbox) -> None:
    """The spout emits as fast as roots may be in flight, so the words wait for the bolt."""
    run = traced(sandbox, pause_ms=1, work_ms=5, words=2, acks=1)
    found = complete_answer(sandbox)
    summary = found["summary"]
    of_work = [each for each in summary["hops"] if each["component"] == "work"]
    waits = sum(each["share"] for each in of_work if each["kind"] in ("queue", "outlet"))
    executes = sum(each["share"] for each in of_work if each["kind"] == "execute")
    assert waits > 0.5
    assert executes < 0.2
    executions = [each for each in found["shown"]["steps"] if each["kind"] == "execute" and each["component"] == "work"]
    assert len(executions) == 2  # both words of the line are followed
    end(run)


def test_a_topology_that_traces_nothing_says_how_to_begin(sandbox: Sandbox) -> None:
    """The setting takes effect while the topology runs, and ends the traces as well."""
    run = traced(sandbox, pause_ms=20, one_in=0)
    assert "--runtime-config topology.trace.one.in=10000" in sandbox.output_of("trace", "traced")
    assert answer(sandbox)["traces"] == []
    sandbox.output_of("update", "traced", "--runtime-config", "topology.trace.one.in=1")
    complete_answer(sandbox)
    end(run)
