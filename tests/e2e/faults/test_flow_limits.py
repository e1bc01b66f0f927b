"""Limits of an instance: the output rate of a component, and the size of queues."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

BYTES_PER_S = 200_000
TUPLES, TUPLE_BYTES = 300, 1000  # of each of the two spouts
KIB = 1024


def metrics_of(sandbox: Sandbox, component: str) -> list[dict[str, float]]:
    """Return the reported metrics of a component's tasks, by name, in order, without metrics that have labels."""
    records = []
    for line in sandbox.log_text("metrics-*.jsonl").splitlines():
        try:
            record = json.loads(line)
        except ValueError:  # the line is incomplete
            continue
        if record["source"]["component"] == component:
            records.append({each["name"]: each["value"] for each in record["metrics"] if not each["labels"]})
    return records


@pytest.mark.pace
@pytest.mark.guarantee
def test_a_component_keeps_its_output_limit(sandbox: Sandbox) -> None:
    """The limit applies to all its tasks together. Little data waits, so nothing times out, and acks pass.

    Guarantee: a component keeps its `topology.component.output.bps`.
    """
    run = sandbox.start("limited.py", args=("--bps", str(BYTES_PER_S)))
    report = run.finished()
    ((rows),) = run.results("times").values()
    times = [float(str(row[0])) for row in rows]
    assert sorted(number for _, _, number, _ in rows) == sorted(2 * list(range(TUPLES)))  # type: ignore[type-var]
    assert (report.components["limited"].acked, report.components["limited"].failed) == (2 * TUPLES, 0)

    after_the_first = sum(TUPLE_BYTES for time_s in times if time_s > times[0] + 0.05)
    assert after_the_first / (times[-1] - times[0]) == pytest.approx(BYTES_PER_S, rel=0.2)
    held = [record["output-held-s"] for record in metrics_of(sandbox, "limited")]
    assert max(held) > 1.5, "of 3 s"


@pytest.mark.pace
def test_the_queue_of_a_slow_task_shrinks_and_loses_nothing(sandbox: Sandbox) -> None:
    """200 KB a second is 20 KB in the target time: the queue holds its minimum, not the window, and loses nothing."""
    run = sandbox.start(
        "recovering.py", "--set", "heron.metrics.export.s=0.1", "--set", "heron.instance.batch.bytes=8192"
    )

    def shrunk() -> bool:
        return any(record["in-queue-bytes"] > 0 for record in metrics_of(sandbox, "slow")) and all(
            record["in-queue-capacity-bytes"] == 64 * KIB and record["in-queue-bytes"] <= 96 * KIB
            for record in metrics_of(sandbox, "slow")[-5:]
        )

    run.until(shrunk, "the queue of the slow task holds little")
    (run.out / "recovered").touch()
    report = run.finished()
    received: object = list(run.results("slow").values())
    assert received == [[report.components["quick"].emitted]]
    assert report.components["slow"].executed == report.components["quick"].emitted
