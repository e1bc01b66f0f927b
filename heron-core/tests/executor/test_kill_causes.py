"""Who ended a process by a signal: what the kernel's counts prove is said, and nothing else."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from heron.executor.children import ChildEnd, Children
from heron.executor.kill_causes import KillCauses
from heron.kernel.own_cgroup import OwnCgroup
from heron_testing.waiting import Eventually

MEMINFO = "MemTotal:       8388608 kB\n"
UNIFIED = {"proc/self/cgroup": "0::/heron\n", "sys/fs/cgroup/heron/memory.max": "1073741824\n"}
NOT_KERNEL = "not by its executor, and not by the kernel for memory; limit 1.0 GiB"


class Host:
    """The kernel's files, and a clock that stands still."""

    def __init__(self, root: Path, **files: str) -> None:
        self.root, self.now_s = root, 100.0
        self.write("proc/meminfo", MEMINFO)
        for name, text in (UNIFIED | {"sys/fs/cgroup/heron/memory.events": "oom 1\noom_kill 3\n"} | files).items():
            self.write(name, text)
        self.causes = KillCauses(OwnCgroup(root), lambda: self.now_s)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")

    def kills(self, number: int) -> None:
        self.write("sys/fs/cgroup/heron/memory.events", f"oom 1\noom_kill {number}\n")

    def killed(self) -> str:
        return self.causes.cause(signal.SIGKILL)


def test_a_kill_for_memory_is_known_by_the_count_of_the_cgroup(tmp_path: Path) -> None:
    """The count of earlier kills proves nothing, and each growth explains one process."""
    host = Host(tmp_path)
    assert host.killed() == NOT_KERNEL
    host.kills(5)
    assert [host.killed() for _ in range(3)] == ["by the kernel for memory; limit 1.0 GiB"] * 2 + [NOT_KERNEL]


def test_a_kill_long_ago_explains_nothing(tmp_path: Path) -> None:
    """Another process of the cgroup was killed for memory a minute before a person killed this one."""
    host = Host(tmp_path)
    host.kills(4)
    for _ in range(60):
        host.now_s += 1.0
        host.causes.look()
    assert host.killed() == NOT_KERNEL


def test_a_process_may_end_some_seconds_after_its_kill(tmp_path: Path) -> None:
    """The kernel frees its memory first; the executor has seen the new count meanwhile."""
    host = Host(tmp_path)
    for _ in range(10):
        host.now_s += 1.0
        host.causes.look()
    host.kills(4)
    for _ in range(3):
        host.now_s += 1.0
        host.causes.look()
    assert host.killed() == "by the kernel for memory; limit 1.0 GiB"


def test_a_look_between_kill_and_end_does_not_hide_the_next_kill(tmp_path: Path) -> None:
    """The count of the first kill is old when the second one comes, and has explained only the first."""
    host = Host(tmp_path)
    host.kills(4)
    host.now_s += 1.0
    host.causes.look()
    host.now_s += 0.1
    assert host.killed() == "by the kernel for memory; limit 1.0 GiB"
    for _ in range(10):
        host.now_s += 1.0
        host.causes.look()
    host.kills(5)
    assert host.killed() == "by the kernel for memory; limit 1.0 GiB"
    assert host.killed() == NOT_KERNEL


def test_version_1_counts_too(tmp_path: Path) -> None:
    """Each controller has its own hierarchy there."""
    own = "sys/fs/cgroup/memory/heron"
    host = Host(tmp_path, **{"proc/self/cgroup": "4:memory:/heron\n0::/\n", f"{own}/memory.oom_control": "oom_kill 0"})
    host.write(f"{own}/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    host.write(f"{own}/memory.limit_in_bytes", "536870912\n")
    assert host.killed() == "by the kernel for memory; limit 512 MiB"


def test_without_a_limit_the_text_says_so(tmp_path: Path) -> None:
    """`max`, or the limit of version 1 that nobody has set, is no limit."""
    host = Host(tmp_path, **{"sys/fs/cgroup/heron/memory.max": "max\n"})
    assert host.killed().endswith("not by the kernel for memory; no memory limit is set")
    host.kills(4)
    assert host.killed() == "by the kernel for memory; no memory limit is set"


def test_the_count_of_the_host_proves_less(tmp_path: Path) -> None:
    """It may have been any process of the host."""
    host = Host(tmp_path, **{"proc/self/cgroup": "0::/\n", "proc/vmstat": "oom_kill 7\n"})
    assert host.killed() == "not by its executor, and not by the kernel for memory; no memory limit is set"
    host.write("proc/vmstat", "oom_kill 8\n")
    assert "the kernel has just killed a process of this host for memory" in host.killed()


def test_a_kernel_that_counts_nothing_leaves_it_open(tmp_path: Path) -> None:
    """Nothing is guessed."""
    causes = KillCauses(OwnCgroup(tmp_path), lambda: 0.0)
    known = "not by its executor; whether by the kernel for memory is not known; no memory limit is set"
    assert causes.cause(signal.SIGKILL) == known


def test_other_signals(tmp_path: Path) -> None:
    """The kernel never sends these for memory; a fault such as SIGSEGV needs no sender."""
    host = Host(tmp_path)
    host.kills(9)
    assert host.causes.cause(signal.SIGTERM) == "not by its executor"
    assert host.causes.cause(signal.SIGSEGV) == ""


@pytest.mark.parametrize(
    ("from_here", "reason"),
    [(False, "killed by SIGKILL (by a stranger)"), (True, "killed by SIGKILL (by its executor)")],
)
def test_the_reason_of_an_end_names_the_sender(
    tmp_path: Path, eventually: Eventually, *, from_here: bool, reason: str
) -> None:
    """What the executor itself has sent is known. The last line of output has nothing to do with a signal."""
    children = Children(lambda _signal: "by a stranger")
    ends = "import os; os.kill(os.getpid(), 9)" if not from_here else "import signal; signal.pause()"
    output = tmp_path / "out"
    children.start("count-3", [sys.executable, "-c", f"print('ready', flush=True); {ends}"], output)
    if from_here:

        def printed() -> bool:
            children.move_outputs()
            return output.read_bytes() == b"ready\n"

        eventually(printed)
        children.kill("count-3")
    ended: list[ChildEnd] = []

    def reaped() -> bool:
        ended.extend(children.reap())
        return bool(ended)

    eventually(reaped)
    assert [each.reason for each in ended] == [reason]


@pytest.mark.parametrize(
    ("noted", "code", "reason"), [(False, 1, "exit code 3 (not given by Heron)"), (True, 3, "exit code 3")]
)
def test_a_code_with_a_meaning_counts_only_if_it_is_noted(
    tmp_path: Path, eventually: Eventually, *, noted: bool, code: int, reason: str
) -> None:
    """The author's code may end the process with any code; a note of an earlier process does not count."""
    note = tmp_path / "count-3.end"
    note.touch()
    children = Children()
    program = f"import os, pathlib; {noted} and pathlib.Path({str(note)!r}).touch(); os._exit(3)"
    children.start("count-3", [sys.executable, "-c", program], tmp_path / "out", note)
    ended: list[ChildEnd] = []

    def reaped() -> bool:
        ended.extend(children.reap())
        return bool(ended)

    eventually(reaped)
    assert [(each.code, each.reason) for each in ended] == [(code, reason)]
