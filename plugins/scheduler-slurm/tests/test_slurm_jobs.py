"""What the answers of Slurm mean for containers."""

from __future__ import annotations

import pytest

from heron_scheduler_slurm.slurm_jobs import observe_places, read_queue

ENDED = "11|NODE_FAIL|None|n1|heron.t.1"


def _observe(*lines: str) -> tuple[bool, str, str]:
    seen = observe_places(read_queue("\n".join(lines), "t"), "t-1")["1"]
    return seen.up, seen.where, seen.reason


def test_only_the_jobs_of_the_topology_are_read() -> None:
    """`kill` cancels what is read, and a user has other jobs in the queue."""
    lines = [
        "9|RUNNING|None|n1|heron.t-2.0",
        "10|RUNNING|None|n2|heron.t.0",
        "8|RUNNING|None|n3|mine|heron.t.0",
        "7|PENDING|Priority||heron.t.0.extra",
        "2|PENDING|Priority||heron.t.3",
    ]
    assert [(each.number, each.place) for each in read_queue("\n".join(lines), "t")] == [("2", "3"), ("10", "0")]


def test_a_container_runs_where_its_job_runs() -> None:
    """The successor in the queue is not a second container."""
    assert _observe("12|RUNNING|None|n2|heron.t.1", "13|PENDING|Dependency||heron.t.1") == (True, "n2, job 12", "")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["12|PENDING|Resources||heron.t.1"], "job 12 is PENDING (Resources)"),
        ([ENDED, "12|PENDING|Priority||heron.t.1"], "job 11 is NODE_FAIL; job 12 is PENDING (Priority)"),
        (["12|COMPLETING|None|n1|heron.t.1", "13|PENDING|Dependency||heron.t.1"], "job 12 is COMPLETING"),
        (
            ["3|TIMEOUT|TimeLimit|n1|heron.t.1", ENDED],
            "job 11 is NODE_FAIL; it has no other job; `heron restart TOPOLOGY CONTAINER` submits one",
        ),
    ],
)
def test_a_container_that_does_not_run_has_the_words_of_slurm(lines: list[str], reason: str) -> None:
    """People look them up in Slurm's manual; the newest end counts."""
    up, _, found = _observe(*lines)
    assert (up, found) == (False, reason)


def test_a_running_container_keeps_the_reason_of_its_last_move() -> None:
    """`heron status` shows why the container has its second attempt."""
    assert _observe(ENDED, "12|RUNNING|None|n2|heron.t.1") == (True, "n2, job 12", "job 11 is NODE_FAIL")


def test_the_end_of_an_earlier_run_is_no_reason() -> None:
    """Slurm remembers jobs for minutes, and a topology can be submitted again under its name."""
    label = "heron topology=t container=1 run={} owner=ann role=ads env=default"
    lines = [
        f"7|CANCELLED|None|n1|heron.t.1|{label.format('t-0')}",
        f"8|NODE_FAIL|None|n1|heron.t.1|{label.format('t-1')}",
        f"9|PENDING|Resources||heron.t.1|{label.format('t-1')}",
    ]
    assert _observe(*lines[::2]) == (False, "", "job 9 is PENDING (Resources)")
    assert _observe(*lines) == (False, "", "job 8 is NODE_FAIL; job 9 is PENDING (Resources)")
