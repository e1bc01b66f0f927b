"""Measure two times on a Spark cluster: until the first tuple, and until the recovery from the kill of a JVM."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

import psutil

from bench.bench_kind import Bench
from bench.findings import Findings, Pace, median_row
from bench.job import LAST, Job
from bench.records import BenchError
from bench.spark_home import CLUSTER, spark_home
from bench.submission import Submission
from heron.clock import monotonic_s

__all__ = ["SparkStart"]

_WITHIN_S = 90.0
_DRIVER_JVM = "org.apache.spark.deploy.SparkSubmit"
_EXECUTOR_JVM = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_JOB = Job("paced_word_count", ("--rate", "1000"))


@dataclass(frozen=True)
class SparkStart(Bench):
    """Each submission goes to a cluster in which nothing runs, and kills the bolt's JVM once.

    Spark's part of the start has two stretches. The first is from the start of the driver's JVM until there is an
    application. The second is from there until the last task has a Python process.
    """

    name: str

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        took_s: defaultdict[str, list[float]] = defaultdict(list)
        resident: defaultdict[str, list[float]] = defaultdict(list)
        with spark_home() as home:
            for _ in range(pace.pairs):
                with Submission(home.folder, CLUSTER, _JOB, pace.engine) as run:
                    whole_s = _first_tuple_s(run, run.began_s) - run.began_s
                    application_s, tasks_s = _stretches(run)
                    took_s["submit to first tuple"].append(whole_s)
                    took_s["of it Spark: an application"].append(application_s)
                    took_s["of it Spark: executors and their Python processes"].append(tasks_s)
                    took_s["of it ours"].append(whole_s - application_s - tasks_s)
                    run.wait(pace.warm_up_s)
                    for role, size in _resident_mib(run).items():
                        resident[role].append(size)
                    killed_s, gone_s = _kill_jvm(run)
                    back_s = _first_tuple_s(run, gone_s) - killed_s
                    took_s["JVM of a container killed, its bolt has tuples again"].append(back_s)
        findings = Findings()
        for subject, values in took_s.items():
            findings.rows.append(median_row(self.name, subject, "s", values))
            findings.rows.append(median_row(self.name, f"{subject}, longest", "s", [max(values)]))
        for role, sizes in resident.items():
            findings.rows.append(median_row(self.name, f"{role}, all of three containers", "MiB resident", sizes))
        return findings


def _first_tuple_s(run: Submission, after_s: float) -> float:
    """Return the time of the bolt's first recorded tuple after `after_s`: at most a tenth of a second late."""
    found: list[float] = []

    def has_come() -> bool:
        for task in run.records.counts(LAST):
            pairs = zip(task.times_s, task.counts, strict=True)
            # The old process may record counts while it dies, so only records after that time count.
            found[:] = [at_s for at_s, count in pairs if at_s > after_s and count][:1]
        return bool(found)

    run.wait_until(lambda _: has_come(), _WITHIN_S)
    return found[0]


def _stretches(run: Submission) -> tuple[float, float]:
    """Return the seconds until there was an application, and from there to the last task's process."""
    application_s = _application_s(run)
    jvm_s = min(each.create_time() for each in _processes(run, _DRIVER_JVM))
    tasks = [each.parent() for each in _processes(run, "heron.executor.main")]
    started_s = [each.create_time() for each in tasks if each is not None]
    if not started_s:
        msg = "found no task of Spark"
        raise BenchError(msg)
    return application_s - jvm_s, max(started_s) - application_s


def _resident_mib(run: Submission) -> dict[str, float]:
    """Return MiB of the processes that exist because of Spark, summed by role."""
    found: defaultdict[str, float] = defaultdict(float)
    for each in run.processes():
        if each.role.startswith("Spark"):
            found[each.role] += each.resident_bytes / 2**20
    return found


def _application_s(run: Submission) -> float:
    """Return the time when the supervisor learned of the application."""
    for line in (run.logs() / "supervisor.log").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if str(record["message"]).startswith("Spark application"):
            return datetime.fromisoformat(record["at"]).timestamp()
    msg = f"{run.logs()}: the log does not name an application"
    raise BenchError(msg)


def _kill_jvm(run: Submission) -> tuple[float, float]:
    """Kill the Spark executor that runs the bolt. Return the time of the kill, and the time when the bolt was gone."""
    (bolt,) = [each.pid for each in run.processes() if each.role == LAST]
    for above in psutil.Process(bolt).parents():
        if _EXECUTOR_JVM in above.cmdline():
            killed_s = monotonic_s()
            above.kill()
            return killed_s, run.wait_until(lambda _: bolt not in {each.pid for each in run.processes()}, _WITHIN_S)
    msg = "no Spark executor runs the bolt"
    raise BenchError(msg)


def _processes(run: Submission, word: str) -> list[psutil.Process]:
    found = [psutil.Process(each.pid) for each in run.processes()]
    return [each for each in found if word in each.cmdline()]
