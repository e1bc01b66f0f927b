"""Metrics of host and container from the kernel's files, in all forms that they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.metricsmgr.host_metrics import HostMetrics

_STAT = "cpu  100 10 40 1000 20 1 4 30 7 7\ncpu0 1 0 0 9\ncpu1 1 0 0 9\nintr 1 2\nprocs_running 3\n"
_MEMINFO = "MemTotal:       1000 kB\nMemFree: 10 kB\nMemAvailable:    400 kB\n"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")


def values(root: Path) -> dict[str, float]:
    """The values by name and mode."""
    found = {}
    for metric in HostMetrics(root, ticks_per_s=100).metrics():
        assert isinstance(metric.value, int | float)
        found[" ".join((metric.name, *metric.labels.values()))] = metric.value
    return found


def test_reads_processors_and_memory(tmp_path: Path) -> None:
    """The time of guests is part of the user's, so the last two columns are not added."""
    pressure = "some avg10=0.00 avg60=1.00 avg300=2.00 total=2500000\nfull avg10=0.00 total=9\n"
    write(tmp_path, {"proc/stat": _STAT, "proc/meminfo": _MEMINFO, "proc/pressure/cpu": pressure})
    assert values(tmp_path) == {
        "host-cpu-s busy": 1.55,
        "host-cpu-s idle": 10.0,
        "host-cpu-s iowait": 0.2,
        "host-cpu-s steal": 0.3,
        "host-cpus": 2,
        "host-run-queue": 3,
        "host-cpu-pressure-s": 2.5,
        "host-memory-available-bytes": 400 * 1024,
    }


@pytest.mark.parametrize("visible", [True, False], ids=["whole-hierarchy", "own-root"])
def test_reads_a_limited_cgroup_of_version_2(tmp_path: Path, visible: bool) -> None:
    """Inside a container the own cgroup is often mounted as the root, though its path says otherwise."""
    folder = "sys/fs/cgroup/pod/heron" if visible else "sys/fs/cgroup"
    write(
        tmp_path,
        {
            "proc/meminfo": _MEMINFO,
            "proc/self/cgroup": "0::/pod/heron\n",
            f"{folder}/memory.current": "5000\n",
            f"{folder}/memory.max": "8000\n",
            f"{folder}/cpu.stat": "usage_usec 9\nthrottled_usec 1500000\n",
        },
    )
    found = values(tmp_path)
    assert found["container-memory-bytes"] == 5000
    assert found["container-memory-limit-bytes"] == 8000
    assert found["container-throttled-s"] == 1.5


def test_reads_cgroups_of_version_1(tmp_path: Path) -> None:
    """Each controller has its own hierarchy."""
    write(
        tmp_path,
        {
            "proc/meminfo": _MEMINFO,
            "proc/self/cgroup": "4:memory:/heron\n1:cpu:/heron\n0::/\n",
            "sys/fs/cgroup/memory/heron/memory.usage_in_bytes": "700",
            "sys/fs/cgroup/memory/heron/memory.limit_in_bytes": "900",
            "sys/fs/cgroup/cpu/heron/cpu.stat": "nr_periods 4\nthrottled_time 2000000000\n",
        },
    )
    found = values(tmp_path)
    assert (found["container-memory-bytes"], found["container-memory-limit-bytes"]) == (700, 900)
    assert found["container-throttled-s"] == 2.0


@pytest.mark.parametrize("limit", ["max", "9223372036854771712"])
def test_an_unlimited_container_has_no_memory_metrics(tmp_path: Path, limit: str) -> None:
    """A limit above the host's memory limits nothing."""
    write(
        tmp_path,
        {
            "proc/meminfo": _MEMINFO,
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.current": "5000",
            "sys/fs/cgroup/memory.max": limit,
        },
    )
    assert set(values(tmp_path)) == {"host-memory-available-bytes"}


def test_missing_and_garbled_files_leave_metrics_out(tmp_path: Path) -> None:
    """Other kernels count other things; the metrics manager must go on."""
    assert values(tmp_path) == {}
    garbled = {"proc/stat": "cpu many\nprocs_running x\n\n", "proc/pressure/cpu": "some total=x", "proc/meminfo": "?\n"}
    write(tmp_path, {**garbled, "proc/self/cgroup": "no colon\n"})
    assert values(tmp_path) == {}
