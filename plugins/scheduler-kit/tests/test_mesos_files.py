"""The output of tasks of Mesos, from documents of a master and an agent."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from heron.errors import SchedulerError
from heron_scheduler_kit.mesos_files import agent_address, last_lines, sandbox

_AGENT = "http://10.0.0.7:5051"
_FILE = "/mesos/slaves/S1/t1/stdout"


class _Mesos:
    """A master with one agent, which sends at most `most` characters at once."""

    def __init__(self, output: str, most: int = 1 << 16) -> None:
        self.output, self.most = output, most
        self.reads = 0

    def get(self, url: str) -> object:
        parts = urlsplit(url)
        if url == "http://master:5050/state":
            return {"slaves": [{"id": "S0"}, {"id": "S1", "pid": "slave(1)@10.0.0.7:5051", "hostname": "a7"}]}
        assert f"{parts.scheme}://{parts.netloc}" == _AGENT
        if parts.path == "/state":
            ended = [{"id": "t0", "directory": "/mesos/slaves/S1/t0"}]
            running = [{"id": "t1", "directory": "/mesos/slaves/S1/t1"}]
            return {"frameworks": [{"executors": running, "completed_executors": ended}]}
        query = parse_qs(parts.query)
        assert (parts.path, query["path"]) == ("/files/read", [_FILE])
        offset = int(query["offset"][0])
        if offset < 0:
            return {"data": "", "offset": len(self.output)}
        self.reads += 1
        length = min(int(query["length"][0]), self.most)
        return {"data": self.output[offset : offset + length], "offset": offset}


def test_the_folder_of_a_task_is_found_also_after_its_end() -> None:
    """The last words of a task that failed are the most wanted."""
    mesos = _Mesos("")
    assert agent_address(mesos.get, "http://master:5050", "S1") == _AGENT
    assert sandbox(mesos.get, _AGENT, "t1") == "/mesos/slaves/S1/t1"
    assert sandbox(mesos.get, _AGENT, "t0") == "/mesos/slaves/S1/t0"


def test_what_mesos_does_not_know_is_named() -> None:
    """An agent may have left, and removes sandboxes after a time."""
    mesos = _Mesos("")
    with pytest.raises(SchedulerError, match="does not know the agent S9"):
        agent_address(mesos.get, "http://master:5050", "S9")
    with pytest.raises(SchedulerError, match="has no task t9 any more"):
        sandbox(mesos.get, _AGENT, "t9")


def test_only_the_end_of_a_file_is_read() -> None:
    """A log may be large, and an agent sends a part at a time."""
    lines = [f"line {number:06d}" for number in range(100_000)]
    mesos = _Mesos("\n".join(lines) + "\n", most=1000)
    assert last_lines(mesos.get, _AGENT, _FILE, 5) == lines[-5:]
    assert mesos.reads == 2
    assert last_lines(_Mesos("").get, _AGENT, _FILE, 5) == []
