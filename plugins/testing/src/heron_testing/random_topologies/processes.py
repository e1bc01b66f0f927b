"""Runs programs as processes, in a sandbox, and changes the topology while it runs."""

from __future__ import annotations

import signal

from heron_testing.heron_run import HeronRun
from heron_testing.random_topologies.comparison import differences, unexpected_errors
from heron_testing.random_topologies.program import Program, Update
from heron_testing.random_topologies.program_file import engine_options, program_text
from heron_testing.random_topologies.program_topology import TOPOLOGY
from heron_testing.random_topologies.spouts import GO, OVER
from heron_testing.random_topologies.task_memory import memories_in
from heron_testing.sandbox import Sandbox

__all__ = ["differences_of_processes"]

_RUN_S = 60.0
_ERROR = "heron: error: "


def differences_of_processes(sandbox: Sandbox, program: Program, *options: str, timeout_s: float = _RUN_S) -> list[str]:
    """Run a program with ``heron run`` and its updates; return what it did otherwise than the program means.

    Args:
        sandbox: where it runs.
        program: the program.
        options: options of ``heron run``.
        timeout_s: the longest run; one that does not end by itself has lost a tree or an end.

    Raises:
        AssertionError: when an update fails.
    """
    file = sandbox.root / f"random_topology_{len(sandbox.runs)}.py"
    file.write_text(program_text(program), encoding="utf-8")
    out = sandbox.root / f"results{len(sandbox.runs)}"
    out.mkdir()
    run = sandbox.start(file, *engine_options(program), *options, args=("--out", str(out)))
    try:
        if program.updates:
            sandbox.wait_for_tasks(run, TOPOLOGY, timeout_s)
            for update in program.updates:
                _carry_out(sandbox, update)
            (out / GO).touch()
            _end_paused_spouts(sandbox, program, run)
        code = run.wait(timeout_s)
    except AssertionError as error:
        run.process.send_signal(signal.SIGINT)
        run.process.wait()
        return [f"AssertionError: {error}"]
    if code:
        return [f"exit code {code}: {run.all_output}"]
    lines = [line.removeprefix(_ERROR) for line in run.stderr.splitlines() if line.startswith(_ERROR)]
    return [*unexpected_errors(program, lines), *differences(program, memories_in(out))]


def _carry_out(sandbox: Sandbox, update: Update) -> None:
    if update.tasks or update.containers:
        parallelism = [f"{name}:{tasks}" for name, tasks in update.tasks.items()]
        sandbox.update(TOPOLOGY, *parallelism, containers=update.containers)
    if update.rebalance:
        sandbox.heron("update", TOPOLOGY, "--rebalance", update.rebalance)
    if update.pauses:
        sandbox.heron("deactivate", TOPOLOGY)
        sandbox.heron("activate", TOPOLOGY)


def _end_paused_spouts(sandbox: Sandbox, program: Program, run: HeronRun) -> None:
    """Pause the topology when the spouts that end in `deactivate` have made all of their calls."""
    spouts = [spout for spout in program.spouts if spout.end == "deactivate"]
    if spouts:
        out = sandbox.root / f"results{len(sandbox.runs) - 1}"
        wanted = [out / f"{spout.name}-{index}.{OVER}" for spout in spouts for index in range(spout.tasks)]
        run.until(lambda: all(path.exists() for path in wanted), "the last calls of the spouts")
        sandbox.heron("deactivate", TOPOLOGY)
        sandbox.start_command("activate", TOPOLOGY).wait()  # it fails if no spout is left, and the topology ends
