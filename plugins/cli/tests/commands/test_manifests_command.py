"""``heron submit --dry-run -o yaml``: documents of the scheduler, or a refusal that names the reason."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from heron_cli.main import heron

_TOPOLOGY = Path(__file__).parents[4] / "examples" / "word_count.py"


def test_a_scheduler_without_objects_is_named() -> None:
    """The default profile starts processes, which no other tool takes."""
    result = CliRunner().invoke(heron, ["submit", "local", str(_TOPOLOGY), "--dry-run", "-o", "yaml"])
    assert result.exit_code == 2
    assert "the scheduler 'local' of profile 'local' makes no objects; leave out -o" in result.output


def test_objects_are_written_without_a_submission_only() -> None:
    """`-o yaml` alone could be taken for the format of the result."""
    result = CliRunner().invoke(heron, ["submit", "local", str(_TOPOLOGY), "-o", "yaml"])
    assert result.exit_code == 2
    assert "-o yaml writes what a submission would make; give --dry-run too" in result.output
