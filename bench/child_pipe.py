"""Measure what the engine adds to a bolt in a child process: against a host that only writes tuples and reads replies.

Processor time is compared, of the instance and its child with that of the host and its child: on two cores the other
processes of a topology take the time that the rate would need.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import partial
from itertools import count
from time import monotonic

import msgspec
import psutil

from bench.bench_kind import Bench, alternate
from bench.findings import Findings, Pace, median_of_ratios, median_row
from bench.job import LAST, MODES, Job
from bench.processes import cpu_s
from bench.records import BenchError
from bench.trial import TOPOLOGIES, Trial
from bench.window import use_in_window

__all__ = ["ChildPipe"]

_START_WITHIN_S = 60.0
_PIPE_BYTES = 1024 * 1024
_CHUNK = 500  # tuples that the host writes at once
_CHUNKS_AHEAD = 4
_END = b"\nend\n"
_BARE = "bare"


@dataclass(frozen=True, slots=True)
class _Use:
    """`per_s` tuples a second; processor microseconds for each, of the host or instance, and of the child."""

    per_s: float
    host_us: float
    child_us: float


@dataclass(frozen=True)
class ChildPipe(Bench):
    """Runs alternate: the bare pipe, and the topology ``child_words`` in both modes."""

    name: str

    def run(self, pace: Pace) -> Findings:
        """See `Bench.run`."""
        found = alternate((_BARE, *MODES), pace.pairs, partial(_measure, pace))
        findings = Findings()
        for subject, uses in found.items():
            label, mode = ("bare pipe", MODES[0]) if subject == _BARE else ("bolt in a child", subject)
            rows = findings.rows
            rows.append(median_row(self.name, label, "tuples/s", [each.per_s for each in uses], mode))
            rows.append(median_row(self.name, label, "CPU us/tuple", [each.host_us for each in uses], mode))
            rows.append(
                median_row(self.name, f"{label}, child", "CPU us/tuple", [each.child_us for each in uses], mode)
            )
        for mode in MODES:
            one, bare = ([each.host_us + each.child_us for each in found[subject]] for subject in (mode, _BARE))
            findings.ratios[f"child.tuple.{mode}.cpu_vs_bare"] = median_of_ratios(one, bare)
        return findings


def _measure(pace: Pace, mode: str) -> _Use:
    if mode == _BARE:
        return _bare(pace)
    job = Job("child_words").in_mode(mode)
    with Trial(job.topology, *job.arguments, engine=pace.engine) as trial:
        trial.wait_until(lambda _: trial.records.has_begun(LAST, 1), _START_WITHIN_S)
        trial.wait(pace.warm_up_s + job.warm_up_s())
        use = use_in_window(trial, pace.window_s, 1)
        if job.acked:  # at most once the spout is many times faster than the child, and half a million words wait
            job.check(trial.records, trial.end())
    return _Use(use.per_s, use.cores["pass"] / use.per_s * 1e6, use.cores["child"] / use.per_s * 1e6)


def _bare(pace: Pace) -> _Use:
    command = [sys.executable, str(TOPOLOGIES / "child_pass.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        try:
            return _pass_words(child, pace)
        finally:
            child.kill()


def _pass_words(child: subprocess.Popen[bytes], pace: Pace) -> _Use:
    assert child.stdin is not None
    assert child.stdout is not None
    for each in (child.stdin, child.stdout):
        fcntl.fcntl(each, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    room, over = threading.Semaphore(_CHUNKS_AHEAD), threading.Event()
    writer = threading.Thread(target=_write, args=(child, room, over), daemon=True)
    writer.start()
    decode, rest, acked = msgspec.json.Decoder().decode, b"", 0
    me, other = psutil.Process(), psutil.Process(child.pid)
    start_s, before, first = 0.0, (0.0, 0.0), 0
    began_s = monotonic()
    while True:
        *documents, rest = (rest + child.stdout.read(_PIPE_BYTES)).split(_END)
        for document in documents:
            if decode(document).get("command") == "ack":
                acked += 1
                if acked % _CHUNK == 0:
                    room.release()
        now_s = monotonic()
        if not start_s and now_s - began_s > pace.warm_up_s:
            start_s, before, first = now_s, (cpu_s(me), cpu_s(other)), acked
        elif start_s and now_s - start_s > pace.window_s:
            break
        if child.poll() is not None:
            msg = f"the child of the bare pipe has ended with {child.returncode}"
            raise BenchError(msg)
    tuples, took_s = acked - first, monotonic() - start_s
    host_s, child_s = cpu_s(me) - before[0], cpu_s(other) - before[1]
    over.set()
    room.release()
    writer.join()
    return _Use(tuples / took_s, host_s / tuples * 1e6, child_s / tuples * 1e6)


def _write(child: subprocess.Popen[bytes], room: threading.Semaphore, over: threading.Event) -> None:
    assert child.stdin is not None
    encode = msgspec.json.Encoder().encode
    child.stdin.write(encode({"pidDir": ""}) + _END)
    for first in count(step=_CHUNK):
        room.acquire()
        if over.is_set():
            return
        rows = (
            {"id": str(number), "comp": "words", "stream": "default", "task": 1, "tuple": [f"word{number % 5000}"]}
            for number in range(first, first + _CHUNK)
        )
        child.stdin.write(b"".join(encode(row) + _END for row in rows))
