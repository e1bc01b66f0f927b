"""What commands of Slurm say when they do not end, or fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import SchedulerError
from heron_scheduler_slurm.options import SlurmOptions
from heron_scheduler_slurm.slurm_commands import SlurmCommands


def commands(folder: Path, script: str) -> SlurmCommands:
    """Commands of which `squeue` is a shell script."""
    program = folder / "squeue"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return SlurmCommands(SlurmOptions(programs=str(folder)))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            "for each in 1 2; do echo 'squeue: cannot stat file /nowhere/slurm.conf' >&2; done; exec sleep 60",
            "`squeue` has no answer after 1 s; it says: cannot stat file /nowhere/slurm.conf$",
        ),
        ("exec sleep 60", "`squeue` has no answer after 1 s; `scontrol ping` shows the controllers$"),
        ("echo 'squeue: error: no way' >&2; exit 3", "`squeue` ended with 3: error: no way$"),
    ],
)
def test_what_a_command_says_is_told(tmp_path: Path, script: str, expected: str) -> None:
    """A person with a wrong `SLURM_CONF` would look for a controller that is well."""
    with pytest.raises(SchedulerError, match=expected):
        commands(tmp_path, script).run("squeue", timeout_s=1)
