"""`heron explain` on real processes that die: while the topology runs, and after its end."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox


_MOST_LINES = 8
_RESTARTED_FOR_LONG = (
    *("--set", "engine.heron.executor.restart.limit=1000"),
    *("--set", "engine.heron.executor.restart.backoff.max.s=1"),
)


def problems(sandbox: Sandbox, name: str, *options: str) -> dict[str, dict[str, Any]]:
    """Return the problems by subject."""
    document = json.loads(sandbox.output_of("explain", name, "--observe", "1", "--json", *options))
    return {each["subject"]: each for each in document["problems"]}


def text(sandbox: Sandbox, name: str) -> list[str]:
    """Return the lines for people."""
    lines = sandbox.output_of("explain", name, "--observe", "1").splitlines()
    assert len(lines) <= _MOST_LINES
    return lines


@pytest.mark.guarantee
def test_a_crash_loop_and_a_kill_are_explained_and_stay_so_after_the_end(sandbox: Sandbox) -> None:
    """One bolt exits at each start, another one is killed by a person; then the loop is cured and the run finishes.

    Guarantee: `heron explain` tells a crash loop from a kill, also after the end.
    """
    # With the default, the bolt is given up after 30 s, and the topology has failed before a busy machine has looked.
    run = sandbox.start("given_up.py", *_RESTARTED_FOR_LONG)
    sandbox.wait_for_state(run, "given_up")
    run.until(lambda: "fragile/2" in problems(sandbox, "given_up"), "the first death is in the history")
    run.the("instance", "/sound-4.json").send_signal(signal.SIGKILL)
    run.until(lambda: len(problems(sandbox, "given_up")) == 2, "the kill is in the history")

    found = problems(sandbox, "given_up")
    loop, kill = found["fragile/2"], found["sound/4"]
    assert loop["what"].startswith("fragile/2 was restarted ")
    assert loop["why"][0].startswith("exit code 7")
    assert loop["why"][1] == "its last output: the table of prices is missing"
    assert loop["command"] == "heron logs given_up --task 2"
    assert kill["what"].startswith("sound/4 was restarted once")
    assert kill["why"][0].startswith("killed by SIGKILL; ")
    assert "its executor (it sent no signal)" in kill["ruled_out"]
    lines = text(sandbox, "given_up")
    assert lines[0].startswith("given_up: fragile/2 was restarted ")
    assert any(line.startswith("given_up: sound/4 was restarted once") for line in lines)

    (run.out / "cured").touch()
    (run.out / "stop").touch()
    run.finished()
    ended = text(sandbox, "given_up")
    assert ended[0].startswith("given_up (finished at ")
    assert "fragile/2 died " in ended[0]
    assert set(problems(sandbox, "given_up")) == {"fragile/2", "sound/4"}
    assert "it is not running" not in ended


def test_a_stopped_task_is_told_from_a_slow_service(sandbox: Sandbox) -> None:
    """It takes 10 s without a tuple, so the observation goes on while the task stands still."""
    run = sandbox.start("costly.py")
    run.until((sandbox.home / ".heron" / "state" / "pplans" / "costly").exists, "its topology manager leads")
    run.until(lambda: sandbox.executed("costly", "split") > 0, "the bolt executes")
    (task,) = (each["task_id"] for each in sandbox.status("costly")["tasks"] if each["component"] == "split")
    process = run.the("instance", f"/split-{task}.json")
    process.send_signal(signal.SIGSTOP)
    document = json.loads(sandbox.output_of("explain", "costly", "--json"))
    process.send_signal(signal.SIGCONT)
    assert (document["problems"][0]["kind"], document["problems"][0]["subject"]) == ("stuck-task", f"split/{task}")
    assert "slow-external-service" not in [each["kind"] for each in document["problems"]]
    sandbox.output_of("kill", "costly")
    run.wait()


def test_a_slow_task_of_a_shuffle_is_not_called_skew(sandbox: Sandbox) -> None:
    """It works off its backlog while its siblings idle behind the held spout, so it executes far more than they do."""
    marks = (
        "--set",
        "engine.heron.stmgr.high.watermark.bytes=65536",
        "--set",
        "engine.heron.stmgr.low.watermark.bytes=0",
    )
    run = sandbox.start("held_siblings.py", *marks)
    run.until((sandbox.home / ".heron" / "state" / "pplans" / "held_siblings").exists, "its topology manager leads")
    run.until(lambda: bool(sandbox.status("held_siblings")["backpressure"]), "the slow task holds the spout")
    document = json.loads(sandbox.output_of("explain", "held_siblings", "--json"))
    found = [(each["kind"], each["subject"]) for each in document["problems"]]
    assert ("slow-task", "work/2") in found
    assert not {"data-skew", "hot-key", "hot-key-group"} & {kind for kind, _ in found}
    assert "--rebalance" not in json.dumps(document)
    sandbox.output_of("kill", "held_siblings")
    run.wait()


def test_a_failed_run_is_explained_by_what_ended_it(sandbox: Sandbox) -> None:
    """Its state is removed with it, so the logs of the run have to tell."""
    run = sandbox.run("broken.py", args=("--where", "initialize"))
    assert run.process.returncode == 1
    (problem,) = problems(sandbox, "broken").values()
    assert problem["kind"] == "topology-failed"
    assert problem["what"].startswith("broken failed at ")
    assert "raised LookupError: the table of prices is missing" in " ".join(problem["why"])


@pytest.mark.starts_nothing
def test_mistakes_are_one_line(sandbox: Sandbox) -> None:
    """Nothing of that name has ever run here, or the time is wrong."""
    assert "topology 'gone' is not running" in sandbox.output_of("explain", "gone", code=2)
    assert "--since 'soon' is neither a span" in sandbox.output_of("explain", "gone", "--since", "soon", code=2)
