"""What commands show of the memory of a task, and of its tuples, on one topology that leaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from heron_testing.waiting import wait_until

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

LEAK_LINE = 'self.seen.append(f"{page} {visit.number}".ljust(1000))'


@pytest.mark.guarantee
def test_a_leak_is_found_and_tuples_are_seen(sandbox: Sandbox) -> None:
    """The line of the author that grows is the first one, and the attribute that holds it is named.

    Guarantee: `heron memory` and `heron inspect` show the line that leaks, and tuples.
    """
    run = sandbox.start("leaking.py")
    run.until((run.out / "flows").exists, "tuples at the sink")
    status = sandbox.status("leaking")
    tasks = {each["component"]: each["task_id"] for each in status["tasks"]}
    check_memory(sandbox, tasks["leak"])
    check_tuples(sandbox, tasks)
    check_one_at_a_time(sandbox, run, tasks["leak"])
    sandbox.output_of("kill", "leaking")
    wait_until(lambda: run.process.poll() is not None, 30.0, "the end of the run")


def check_memory(sandbox: Sandbox, leak: int) -> None:
    """The command as a person uses it, and its JSON."""
    memory = json.loads(sandbox.output_of("memory", "leaking", f"leak/{leak}", "--seconds", "3", "--json"))
    line = next(each for each in memory["lines"] if each["origin"] == "user")
    assert (Path(line["file"]).name, line["source"]) == ("leaking.py", LEAK_LINE)
    assert line["grown_bytes"] > 50_000
    held: dict[str, dict[str, Any]] = {each["name"]: each for each in memory["held"]}
    assert held["self.seen"]["grown_entries"] > 50
    assert held["self.seen"]["grown_bytes"] > 50_000
    assert {"type": "bytearray", "held_by": "self.image"}.items() <= memory["buffers"][0].items()
    assert memory["second"]["resident_bytes"] > memory["second"]["objects_bytes"] > 0

    text = sandbox.output_of("memory", "leaking", str(leak), "--seconds", "0")
    assert "; Python's objects account for about " in text
    assert "self.image" in text
    assert "lines that" not in text


def check_tuples(sandbox: Sandbox, tasks: dict[str, int]) -> None:
    """Only those of the component whose configuration allows it, until the configuration changes."""
    tuples = json.loads(sandbox.output_of("inspect", "leaking", str(tasks["leak"]), "--tuples", "3", "--json"))
    assert (len(tuples["received"]), len(tuples["emitted"])) == (3, 3)
    received, emitted = tuples["received"][0], tuples["emitted"][0]
    assert (received["component"], received["task_id"], received["fields"]) == (
        "visits",
        tasks["visits"],
        ["page", "visit"],
    )
    assert received["values"][1].startswith("Visit(number=")
    assert received["values"][1].endswith(", password=(hidden))")
    assert (emitted["component"], emitted["fields"]) == ("leak", ["page", "count"])

    refused = sandbox.output_of("inspect", "leaking", f"sink/{tasks['sink']}", code=2)
    assert "topology.inspect.tuples of component 'sink' is false" in refused
    sandbox.output_of("update", "leaking", "--runtime-config", "sink:topology.inspect.tuples=true")
    text = sandbox.output_of("inspect", "leaking", f"sink/{tasks['sink']}", "--tuples", "2")
    assert "received: 2 tuples" in text
    assert "  from leak, stream default:" in text
    assert "emitted: 0 tuples" in text
    sandbox.output_of("deactivate", "leaking")
    silent = sandbox.output_of("inspect", "leaking", str(tasks["visits"]), code=2)
    assert "of component 'visits' is false" in silent
    sandbox.output_of("activate", "leaking")


def check_one_at_a_time(sandbox: Sandbox, run: HeronRun, leak: int) -> None:
    """A second observation is refused; the end of the process is an error of the first one."""
    first = sandbox.start_command("memory", "leaking", str(leak), "--seconds", "300")

    def is_observed() -> bool:
        threads = json.loads(sandbox.output_of("stack", "leaking", str(leak), "--json"))["threads"]
        return any(each["name"] == "inspection-memory" for each in threads)

    wait_until(is_observed, 30.0, "the thread that observes")
    assert f"observing leaking task {leak} for 300 s; it is slower meanwhile" in first.stderr
    refused = sandbox.output_of("profile", "leaking", str(leak), "--out", str(sandbox.root / "leak"), code=2)
    assert f"task {leak} is being observed (its memory) already, for another 2" in refused
    run.the("instance", f"leak-{leak}").kill()
    assert first.wait() == 1
    assert f"the process of task {leak} has ended before it answered" in first.stderr
