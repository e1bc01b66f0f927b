"""Holds processes of a run at an instant of a checkpoint, a restore or an update, so that a test can kill one there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

__all__ = ["HeldInstants"]

_HOOK = Path(__file__).with_name("instant_hook")


class HeldInstants:
    """The instants of all processes of a sandbox. Make it before the first run.

    | name | the process is about to |
    |---|---|
    | any other | raise ``heron.test.instant`` with this name, in a component |
    | `store` | store the state of a task, in an instance |
    | `manifest` | store the manifest, in the topology manager: every task has saved |
    | `complete` | write the plan that says that the checkpoint is complete, in the topology manager |
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._folder = sandbox.root / "instants"
        self._folder.mkdir()
        sandbox.environ |= {"HERON_TEST_INSTANTS": str(self._folder), "PYTHONPATH": str(_HOOK)}

    def hold(self, name: str) -> None:
        """From now on, a process that comes to this instant waits there."""
        (self._folder / name).touch()

    def reached(self, run: HeronRun, name: str) -> None:
        """Wait until a process is held there."""
        run.until(lambda: any(self._folder.glob(f"{name}.*")), f"a process at the instant {name!r}")

    def release(self, name: str) -> None:
        """Let the held processes continue."""
        (self._folder / name).unlink()
        for each in self._folder.glob(f"{name}.*"):
            each.unlink()
