"""Commands print by way of the view, which shows the control characters of names and records as signs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PLUGINS = Path(__file__).resolve().parents[1] / "plugins"
OWN = {"view/text.py", "view/console.py", "view/live/run_view.py", "view/live/live_view.py"}
PRINTS = {"print", "click.echo", "click.secho", "Console", "sys.stdout.write", "sys.stderr.write"}


@pytest.mark.parametrize(
    "source", ["cli/src/heron_cli", "health-manager/src/heron_health_manager"], ids=lambda source: source.split("/")[0]
)
def test_every_text_of_a_command_is_printed_by_way_of_its_view(source: str) -> None:
    """A new command that prints a name must not forget it: `echo` and `open_console` are the ways to the terminal."""
    found = []
    for path in sorted((PLUGINS / source).rglob("*.py")):
        name = path.relative_to(PLUGINS / source).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called in PRINTS:
                found.append((name, called))
    assert {name for name, _ in found} <= OWN
    assert [called for name, called in found if name.startswith("view/live/")].count("Console") == 0
