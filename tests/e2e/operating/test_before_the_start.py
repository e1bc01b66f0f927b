"""Refusals of the real command: exit code 2 and no change. The tests of `heron_cli` have the other cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

# A full file system without root: no file may become larger than 1 KiB.
NO_SPACE = ("sh", "-c", 'ulimit -f 2; exec "$0" "$@"')


@pytest.mark.starts_nothing
def test_no_space_for_the_package_is_refused(sandbox: Sandbox) -> None:
    """The command removes the partial package; no log folder is left either."""
    run = sandbox.start("steady.py", wrapper=NO_SPACE)
    assert run.wait() == 2, run.all_output
    assert "steady.tar.gz: cannot be written: " in run.stderr
    assert "free or allow the space" in run.stderr
    assert not sandbox.remaining()
    assert not sandbox.log_text()


@pytest.mark.starts_nothing
def test_a_file_that_does_not_import_names_its_line(sandbox: Sandbox) -> None:
    """The error names the author's line, and no bytecode stays in the author's folder."""
    folder = sandbox.root / "author"
    folder.mkdir()
    file = folder / "words.py"
    file.write_text("import heron.api\nimport nowhere_to_be_found\n", encoding="utf-8")
    run = sandbox.run(file)
    assert run.process.returncode == 2
    assert f"{file}:2: ModuleNotFoundError: No module named 'nowhere_to_be_found'" in run.stderr, run.all_output
    assert [each.name for each in folder.iterdir()] == ["words.py"]
    assert not sandbox.remaining()
