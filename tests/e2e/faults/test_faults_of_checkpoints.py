"""A store of checkpoints that is away or slow, and checkpoints that cannot be restored."""

from __future__ import annotations

import shutil
import signal
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from committed_lines import PARTITIONS, check_committed, committed
from held_instants import HeldInstants

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox


TOPOLOGIES = Path(__file__).parents[1] / "topologies"
NAME = "exactly_once"


def started(sandbox: Sandbox, interval_s: float, *options: str) -> HeronRun:
    """Start the topology, and take a checkpoint."""
    run = sandbox.start(f"{NAME}.py", *options, args=("--interval", str(interval_s)))
    sandbox.wait_for_tasks(run, NAME)  # it takes checkpoints from then on
    sandbox.output_of("checkpoints", NAME, "take")
    return run


def lines(run: HeronRun) -> int:
    """Return the number of committed lines."""
    return sum(map(len, committed(run.out).values()))


def check_exact(run: HeronRun) -> None:
    """End the run: every line is committed once."""
    (run.out / "stop").touch()
    run.finished()
    assert check_committed(run.out, PARTITIONS) > 0


def store_of(sandbox: Sandbox) -> Path:
    """Return the folder of the checkpoints."""
    return sandbox.home / ".heron" / "checkpoints"


@pytest.mark.guarantee
def test_a_restore_waits_for_a_store_that_is_away(sandbox: Sandbox) -> None:
    """It tries again until the store is back; no task fails.

    Guarantee: a restore waits for a store that is away.
    """
    run = started(sandbox, 600.0)
    store = store_of(sandbox)
    store.rename(store.with_name("aside"))
    run.processes("instance", "/count-")[0].kill()
    run.until(lambda: "next attempt in" in sandbox.log_text("count-*.log"), "a failed attempt")
    assert sandbox.checkpoints(NAME)["waits_for"].startswith("task")
    store.with_name("aside").rename(store)
    sandbox.output_of("checkpoints", NAME, "take", "--timeout", "60")
    assert all("killed by SIGKILL" in each for each in sandbox.status(NAME)["errors"])
    check_exact(run)


def test_a_restore_fails_when_the_store_stays_away(sandbox: Sandbox) -> None:
    """The error names the object, the time limit and its key."""
    run = started(sandbox, 600.0, "--set", "heron.checkpoint.restore.timeout.s=0.5")
    store = store_of(sandbox)
    store.rename(store.with_name("aside"))
    run.processes("instance", "/count-")[0].kill()
    assert run.wait() == 1, run.all_output
    assert "restoring its state raised CheckpointError: checkpoint object" in run.stderr
    assert (
        "attempts within 0.5 s have failed; repair the store, or allow more time by heron.checkpoint.restore.timeout.s"
        in run.stderr
    )
    store.with_name("aside").rename(store)


def test_a_slow_store_fails_the_checkpoint_and_the_next_one_succeeds(sandbox: Sandbox) -> None:
    """Data flows meanwhile; the reason names the tasks and the time limit."""
    instants = HeldInstants(sandbox)
    run = started(sandbox, 0.5, "--set", "heron.checkpoint.timeout.s=0.5")
    before = sandbox.checkpoints(NAME)
    instants.hold("store")
    run.until(lambda: sandbox.checkpoints(NAME)["failed"] > before["failed"], "a failed checkpoint")
    failed = sandbox.checkpoints(NAME)
    run.grows(lambda: sandbox.executed(NAME, "commit"), "data")
    assert (
        "within 0.5 s (heron.checkpoint.timeout.s)" in failed["last_error"]
        or "still being stored" in failed["last_error"]
    )
    instants.release("store")
    run.until(lambda: sandbox.checkpoints(NAME)["complete"] > failed["complete"], "a complete checkpoint")
    assert sandbox.checkpoints(NAME)["restores"] == before["restores"]
    check_exact(run)


def test_state_that_cannot_be_saved_fails_the_checkpoint(sandbox: Sandbox) -> None:
    """The reason names the state, a key and the type; data flows, and the next checkpoint without it succeeds."""
    run = started(sandbox, 0.5)
    (run.out / "unpicklable").touch()
    run.until(lambda: sandbox.checkpoints(NAME)["failed"] > 0, "a failed checkpoint")
    failed = sandbox.checkpoints(NAME)
    for each in ("component 'count'", "'mark'", "of type function", "cannot be pickled", "a value that pickle accepts"):
        assert each in failed["last_error"]
    run.grows(lambda: sandbox.executed(NAME, "commit"), "data")
    (run.out / "unpicklable").unlink()
    run.until(lambda: sandbox.checkpoints(NAME)["complete"] > failed["complete"], "a complete checkpoint")
    assert sandbox.checkpoints(NAME)["restores"] == 0
    check_exact(run)


def test_a_checkpoint_that_does_not_fit_is_refused(sandbox: Sandbox) -> None:
    """It is torn, of a newer version, or of another topology, which the command sees; other classes, a torn payload."""
    run = started(sandbox, 600.0)
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 130, run.all_output
    (manifest,) = store_of(sandbox).glob(f"{NAME}/*/*/manifest")
    whole = manifest.read_bytes()

    def refusal(code: int, target: Path | str = f"{NAME}.py", *arguments: str) -> str:
        later = sandbox.start(target, "--from-checkpoint", "latest", args=arguments)
        assert later.wait() == code, later.all_output
        return later.stderr

    manifest.write_bytes(whole[:-1])
    assert "are torn or changed, their checksum does not match; use another checkpoint" in refusal(2)
    manifest.write_bytes(edited(whole, b'"format":1', b'"format":2'))
    assert "has format 2, this version of heron-core reads formats up to 1; upgrade heron-core" in refusal(2)
    manifest.write_bytes(edited(whole, b'"topology":"exactly_once"', b'"topology":"another_one"'))
    assert "of topology 'another_one'; use another checkpoint" in refusal(2)
    manifest.write_bytes(whole)

    program = sandbox.root / "changed" / f"{NAME}.py"
    shutil.copytree(TOPOLOGIES, program.parent)
    program.write_text(program.read_text(encoding="utf-8").replace("Mark", "Sign"), encoding="utf-8")
    changed = refusal(1, program, "--out", str(run.out))
    assert "the topology needs the classes that it had when it saved the state, or use another checkpoint" in changed
    payload = max(manifest.parent.glob("task-*"), key=lambda each: each.stat().st_size)
    payload.write_bytes(payload.read_bytes()[:-1])
    assert "it was cut or replaced, use another checkpoint" in refusal(1)


def edited(document: bytes, before: bytes, after: bytes) -> bytes:
    """Return a manifest with other content and the right checksum."""
    assert before in document
    content = document[4:].replace(before, after)
    return zlib.crc32(content).to_bytes(4, "little") + content
