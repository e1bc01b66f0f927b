"""Limits of an instance: the output rate of a component, and the size of queues."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

BYTES_PER_S = 200_000
TUPLES, TUPLE_BYTES = 500, 1000  # of each of the two spouts
AT_ONCE_S = 1.6  # what the limit lets pass before its pace counts: a full bucket, and a last batch
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


@pytest.mark.guarantee
def test_a_component_keeps_its_output_limit(sandbox: Sandbox) -> None:
    """The limit applies to all its tasks together. Little data waits, so nothing times out, and acks pass.

    The first emit and the last arrival bound the time from outside, so a busy machine cannot make it too short.

    Guarantee: a component keeps its `topology.component.output.bps`.
    """
    run = sandbox.start("limited.py", args=("--bps", str(BYTES_PER_S)))
    report = run.finished()
    ((rows),) = run.results("times").values()
    began_s = min(float(str(row[3])) for row in rows)
    took_s = max(float(str(row[0])) for row in rows) - began_s
    assert sorted(number for _, _, number, _ in rows) == sorted(2 * list(range(TUPLES)))  # type: ignore[type-var]
    assert (report.components["limited"].acked, report.components["limited"].failed) == (2 * TUPLES, 0)

    assert BYTES_PER_S * (took_s + AT_ONCE_S) >= 2 * TUPLES * TUPLE_BYTES
    assert max(record["output-held-s"] for record in metrics_of(sandbox, "limited")) > 0.0


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
