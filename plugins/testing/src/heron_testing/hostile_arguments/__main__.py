"""Writes the matrix: ``python -m heron_testing.hostile_arguments PAGE`` replaces the tables at the end of a page."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import tempfile
from pathlib import Path

from heron_testing.hostile_arguments.cells import cells
from heron_testing.hostile_arguments.simulated import verdict_of
from heron_testing.hostile_arguments.table import matrix_text, with_matrix


def main(page: Path) -> None:
    """Run all cells, and write their table."""
    logging.disable()
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        for cell in cells():
            with contextlib.redirect_stderr(io.StringIO()):  # the engine shows each error
                outcomes[cell] = verdict_of(cell, Path(folder)).outcome
    page.write_text(with_matrix(page.read_text(encoding="utf-8"), matrix_text(outcomes)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
