"""A function of a pipeline that blocks: what `heron status` shows meanwhile, and that nothing is lost or restarted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

ELEMENTS = 20_000


def goes_on(run: HeronRun, sandbox: Sandbox) -> None:
    """Let the function return: each element arrives once, and no process was replaced."""
    assert "died" not in run.stderr
    (run.out / "go").touch()
    run.finished()
    lines = [line for path in (run.out / "numbers").glob("*.txt") for line in path.read_text().splitlines()]
    assert sorted(map(int, lines)) == list(range(ELEMENTS))


def test_a_stage_that_blocks_is_named_as_the_cause_of_back_pressure(sandbox: Sandbox) -> None:
    """The name of the stage has those of its operators."""
    run = sandbox.start("blocked_pipeline.py")
    run.printed("back pressure by ahead-to-blocks/")
    assert "back pressure by ahead-to-blocks/2" in sandbox.output_of("status", "blocked_pipeline")
    goes_on(run, sandbox)


def test_a_source_that_blocks_makes_nothing_and_is_not_restarted(sandbox: Sandbox) -> None:
    """Nothing waits for it upstream, so there is no back pressure: its counter stands still."""
    run = sandbox.start("blocked_pipeline.py", args=("--source", "1"))
    run.until((run.out / "blocked").exists, "the function")
    run.until(lambda: rates_per_s(sandbox) == [0.0, 0.0], "a rate of 0")
    goes_on(run, sandbox)


def rates_per_s(sandbox: Sandbox) -> list[float]:
    """The rates of all components."""
    return [each["rate_per_s"] for each in sandbox.status("blocked_pipeline")["components"]]
