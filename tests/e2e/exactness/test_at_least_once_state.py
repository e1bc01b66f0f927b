"""At least once with checkpoints: state survives deaths, and every message is part of it at least once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox


QUEUES, MESSAGES = 12, 800


def started(sandbox: Sandbox) -> HeronRun:
    """Start the topology and wait until messages were acked; the second half of them waits."""
    run = sandbox.start("acked_queue.py")
    (run.out / "hold").touch()
    run.until((run.home / ".heron").exists, "the command has begun")
    acks(run, "at the start")
    return run


def acks(run: HeronRun, what: str) -> None:
    """Wait until more messages are acked."""
    run.grows(lambda: acked(run), f"acks {what}")


def acked(run: HeronRun) -> int:
    """Return how many messages the broker has forgotten."""
    return sum(path.read_text(encoding="utf-8").count("\n") for path in (run.out / "acked").glob("*"))


def counts(run: HeronRun) -> list[int]:
    """Let the topology end, and return how often each message is part of the state."""
    (run.out / "hold").unlink()
    run.finished()
    (result,) = run.out.glob("record-*.json")
    found = {(row[3], row[4]): row[5] for row in json.loads(result.read_text(encoding="utf-8"))}
    assert sorted(found) == [(queue, number) for queue in range(QUEUES) for number in range(MESSAGES)]
    return list(found.values())


def test_without_a_fault_each_message_counts_once(sandbox: Sandbox) -> None:
    """Acks come with checkpoints, and the last ones with the final checkpoint."""
    run = started(sandbox)
    assert set(counts(run)) == {1}
    assert acked(run) == QUEUES * MESSAGES


@pytest.mark.parametrize(
    "role",
    [
        pytest.param("count-", marks=pytest.mark.guarantee),
        pytest.param("read-", marks=pytest.mark.soak),
        pytest.param("stmgr", marks=pytest.mark.soak),
    ],
)
def test_state_survives_a_death(sandbox: Sandbox, role: str) -> None:
    """Messages that were acked before the death are still counted; later ones are delivered again.

    Guarantee: at least once with state, a death leaves no message out of the state.
    """
    run = started(sandbox)
    before = sandbox.checkpoints("acked_queue")["restores"]
    (run.processes("stmgr") if role == "stmgr" else run.processes("instance", role))[0].kill()
    run.until(lambda: sandbox.checkpoints("acked_queue")["restores"] > before, "a restore")
    assert min(counts(run)) >= 1


def test_state_moves_with_an_update(sandbox: Sandbox) -> None:
    """Counts get other tasks with their key groups, and queues other spout tasks."""
    run = started(sandbox)
    for parallelism in ("read:3 count:4", "read:1 count:1"):
        sandbox.output_of("update", "acked_queue", "--component-parallelism", parallelism)
    assert min(counts(run)) >= 1
