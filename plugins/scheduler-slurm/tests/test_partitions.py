"""Partitions that would let a job wait for ever."""

from __future__ import annotations

import pytest

from heron_scheduler_slurm.partitions import find_partition_problem

SHOWN = """\
PartitionName=usual AllowAccounts=ALL Default=YES MaxTime=UNLIMITED State=UP
PartitionName=short AllowAccounts=ALL Default=NO MaxTime=02:00:00 State=UP
PartitionName=physics AllowAccounts=physics,optics Default=NO MaxTime=1-00:00:00 State=UP
PartitionName=closed AllowAccounts=ALL Default=NO MaxTime=UNLIMITED State=DOWN
"""


@pytest.mark.parametrize(
    ("names", "account", "time_limit"),
    [
        ("", "chemistry", "30-00:00:00"),
        ("short", "", "120"),
        ("short", "", "119:59"),
        ("short", "", "2:00:00"),
        ("short", "", "0-02"),
        ("short", "", ""),
        ("physics", "optics", "1-0"),
        ("physics", "", ""),
        ("closed,usual", "", ""),
        ("short,usual", "", "UNLIMITED"),
        ("nowhere", "", ""),
    ],
)
def test_a_job_that_one_partition_runs_is_no_problem(names: str, account: str, time_limit: str) -> None:
    """Times have all forms of Slurm; an account of the site's choice is not known here, and `sbatch` names others."""
    assert find_partition_problem(SHOWN, names, account, time_limit) == ""


@pytest.mark.parametrize(
    ("names", "account", "time_limit", "problem"),
    [
        (
            "short",
            "",
            "121",
            "partition short permits jobs of 02:00:00; scheduler.time_limit is '121'; set a shorter one",
        ),
        ("short", "", "120:01", "scheduler.time_limit is '120:01'"),
        ("short", "", "1-0", "scheduler.time_limit is '1-0'"),
        ("short", "", "UNLIMITED", "scheduler.time_limit is 'UNLIMITED'"),
        (
            "physics",
            "chemistry",
            "",
            "permits the accounts physics,optics; scheduler.account is 'chemistry'; set it to",
        ),
        ("closed", "", "", "partition closed is DOWN; set scheduler.partition to another"),
        ("closed,short", "", "3:0:0", "partition short permits"),
    ],
)
def test_a_job_that_no_partition_runs_is_named(names: str, account: str, time_limit: str, problem: str) -> None:
    """The option to correct is named with its value and the limit."""
    assert problem in find_partition_problem(SHOWN, names, account, time_limit)
