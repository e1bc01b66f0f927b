"""The time limit of commands that wait for an answer."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from heron_cli.commands.options import timeout_option


@click.command()
@timeout_option(5.0, "The longest wait for an answer.")
def wait(timeout: float) -> None:
    click.echo(timeout)


@pytest.mark.parametrize(
    ("variable", "options", "answer"),
    [
        ("", (), "5.0\n"),
        ("7", (), "7.0\n"),
        ("7", ("--timeout", "0.5"), "0.5\n"),
        ("soon", (), "Invalid value for '--timeout' (env var: 'HERON_TIMEOUT'): 'soon' is not a valid float"),
        ("0", (), "Invalid value for '--timeout' (env var: 'HERON_TIMEOUT'): 0.0 is not in the range x>0"),
    ],
)
def test_the_variable_is_below_the_option(variable: str, options: tuple[str, ...], answer: str) -> None:
    """A person of a slow machine sets it once. An error names the variable."""
    result = CliRunner().invoke(wait, options, env={"HERON_TIMEOUT": variable})
    assert answer in result.output
