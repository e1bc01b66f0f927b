"""What partitions permit, as ``scontrol show partition -o`` writes it. Pure.

Without ``EnforcePartLimits`` Slurm accepts a job that its partition never runs; ``sbatch --test-only`` accepts it too.
"""

from __future__ import annotations

import math

__all__ = ["find_partition_problem"]

_UNLIMITED = frozenset({"", "UNLIMITED", "INFINITE"})


def find_partition_problem(shown: str, names: str, account: str, time_limit: str) -> str:
    """Return why none of the partitions runs a job, with what helps; "" if one may run it.

    `names` are separated by commas; "" means the default partition. An empty `account` or `time_limit` is the site's.
    """
    partitions = [dict(word.partition("=")[::2] for word in line.split()) for line in shown.splitlines()]
    chosen = [each for each in partitions if each.get("PartitionName") in names.split(",")]
    if not names:
        chosen = [each for each in partitions if each.get("Default") == "YES"]
    problems = [_problem(each, account, time_limit) for each in chosen]
    return problems[0] if problems and all(problems) else ""


def _problem(partition: dict[str, str], account: str, time_limit: str) -> str:
    name = f"partition {partition.get('PartitionName')}"
    state, accounts = partition.get("State", "UP"), partition.get("AllowAccounts", "ALL")
    most = partition.get("MaxTime", "")
    if state != "UP":
        return f"{name} is {state}; set scheduler.partition to another that `sinfo` lists"
    if account and accounts != "ALL" and account not in accounts.split(","):
        return f"{name} permits the accounts {accounts}; scheduler.account is {account!r}; set it to one of them"
    if _minutes(time_limit) > _minutes(most) and time_limit:
        return f"{name} permits jobs of {most}; scheduler.time_limit is {time_limit!r}; set a shorter one"
    return ""


def _minutes(text: str) -> float:
    """Return the minutes of a time limit: ``90``, ``1:30:00``, ``1-00``."""
    if text in _UNLIMITED:
        return math.inf
    days, dash, rest = text.rpartition("-")
    parts = [int(each) for each in rest.split(":")]
    if not dash and len(parts) < 3:
        parts = [0, *parts]  # minutes or minutes:seconds; after days the first number is hours
    hours, minutes, seconds = (*parts, 0, 0)[:3]
    return int(days or 0) * 24 * 60 + hours * 60 + minutes + seconds / 60
