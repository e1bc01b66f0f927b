"""What a file that is not Python gets from the command line, and what it does not get."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from heron.errors import UsageError
from heron_cli.commands.file_arguments import file_arguments
from heron_cli.commands.plan import plan
from heron_cli.commands.run import run
from heron_cli.commands.submit import submit


def arguments(command: click.Command, *words: str) -> tuple[str, ...]:
    """Return the arguments of the file of a command line."""
    with command.make_context("command", list(words)) as context:
        given = context.params
        return file_arguments(context, given["target"], given["keys"], given["arguments"])


@pytest.fixture
def jar(tmp_path: Path) -> str:
    """A file that is not Python."""
    path = tmp_path / "words.jar"
    path.touch()
    return str(path)


@pytest.mark.parametrize(("command", "before"), [(run, ()), (plan, ()), (submit, ("local",))])
def test_a_key_stands_before_or_behind_the_arguments(command: click.Command, before: tuple[str, ...], jar: str) -> None:
    """As with `storm jar`; options of the command stay its own."""
    found = arguments(command, *before, jar, "a.Main", "-c", "k=1", "word", "--set", "a=b", "-c", "l=2")
    assert found == ("-c", "k=1", "-c", "l=2", "a.Main", "word")
    assert arguments(command, *before, "-c", "k=1", jar, "--", "a.Main", "-c", "l=2") == (
        *("-c", "k=1"),
        *("a.Main", "-c", "l=2"),
    )


def test_options_of_the_command_behind_two_dashes_are_named(jar: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They go to the program, which may have the same ones, so nothing is refused."""
    words = ("a.Main", "--timeout", "60", "--set=a=b", "--other", "-c", "k=1")
    assert arguments(run, jar, "--", *words) == words
    assert capsys.readouterr().err == (
        "heron: warning: '--set', '--timeout' behind `--`: goes to the program in words.jar; options of heron stand in "
        "front of `--`\n"
    )


def test_a_python_file_has_no_keys_and_its_own_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its author knows `--`; `-c` would have no effect."""
    path = tmp_path / "words.py"
    path.touch()
    assert arguments(run, str(path), "--", "--timeout", "60") == ("--timeout", "60")
    assert not capsys.readouterr().err
    with pytest.raises(UsageError, match=r"-c 'k' sets a key of the system .* words.py is Python: it has none; use"):
        arguments(run, "-c", "k=1", str(path))
    with pytest.raises(UsageError, match="a stored package keeps those; use --set"):
        arguments(submit, "local", "--package", "a:1", "-c", "k=1")
