"""What a terminal gets of hostile names, errors and records."""

from __future__ import annotations

import io
import json
import sys

import pytest
from click.testing import CliRunner
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from heron.errors import UsageError
from heron.ipc.documents.status import ComponentStatus, TaskStatus, TopologyStatus
from heron_cli.command_group import CommandGroup
from heron_cli.main import heron
from heron_cli.topologies.logs.log_files import LogLine
from heron_cli.view.console import open_console
from heron_cli.view.live.live_view import LiveView
from heron_cli.view.live.progress_bar import ProgressBar
from heron_cli.view.live.quiet_progress import QuietProgress
from heron_cli.view.live.run_view import PlainView
from heron_cli.view.status_table import status_table
from heron_cli.view.text import echo, json_text, print_json, printable, printable_and_colours

HOSTILE = {
    "colour": "\x1b[31mred",
    "clear the screen": "\x1b[2J\x1b[H",
    "title": "\x1b]0;owned\x07",
    "clipboard": "\x1b]52;c;cm0gLXJmIC8=\x1b\\",
    "link": "\x1b]8;;http://evil.example\x1b\\safe\x1b]8;;\x1b\\",
    "answer": "\x1b[6n\x1bP$q\x1b\\",
    "eight bit": "\x9b2J\x9d0;owned\x9c",
    "return": "all is well\rheron: error",
    "backspace": "ok\b\bno",
    "bell": "\x07",
    "zero": "a\0b",
    "delete": "a\x7fb",
    "direction": "\u202etxt.exe\u2066",
    "invisible": "a\u200bb\ufeffc\U000e0041",
    "line separator": "a\u2028b\u2029c\x85d",
    "half": "\ud800",
}
BAD = {chr(code) for code in (*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0))} | set(
    "\u200b\u2028\u2029\u202e\u2066\ufeff\U000e0041\ud800"
)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_a_text_for_people_has_nothing_that_a_terminal_obeys(text: str) -> None:
    """The other characters stay, so that a person sees what was tried."""
    shown = printable(f"{text}\tend\n")
    assert not BAD & set(shown)
    assert shown.endswith("\tend\n")
    assert len(shown) == len(text) + 5
    assert printable(shown) == shown


def test_ordinary_texts_of_all_languages_stay() -> None:
    """Joiners are letters of some languages, and parts of some signs."""
    text = "naïve Ümlaut 数据流 ‌می‌خواهم 👩‍💻 5 µs 1 000\n\tx"
    assert printable(text) == text


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_json_for_programs_keeps_the_text_and_sends_no_control_character(text: str) -> None:
    """JSON has escapes of its own for all of them."""
    if text == HOSTILE["half"]:
        return  # no JSON of Heron has one: msgspec refuses it
    shown = json_text(json.dumps({text: [text]}, ensure_ascii=False).encode())
    assert not BAD & set(shown)
    assert json.loads(shown) == {text: [text]}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_only_colours_of_an_authors_program_reach_the_terminal(text: str) -> None:
    """A program may print in colours; the rest could change what Heron shows."""
    shown = printable_and_colours(f"\x1b[1;32mgreen\x1b[0m {text}")
    assert shown.startswith("\x1b[1;32mgreen\x1b[0m ")
    rest = shown.removeprefix("\x1b[1;32mgreen\x1b[0m ")
    assert not BAD & set(rest.replace("\x1b[31m", "") if text == HOSTILE["colour"] else rest)


def status(text: str) -> TopologyStatus:
    """The status of a topology whose every text is hostile."""
    components, tasks = (ComponentStatus(text, "bolt", 1),), (TaskStatus(1, text, 1, "running", 1),)
    return TopologyStatus(text, text, "running", 0.0, plan_version=1, components=components, tasks=tasks)


@pytest.mark.parametrize("text", [*HOSTILE.values(), "[red]x[/red] [/] :smile:"], ids=[*HOSTILE, "markup"])
def test_tables_trees_and_bars_show_hostile_texts(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A console passes only its own colours and movements; brackets of a name are no markup."""
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    table = Table(text, title=text)
    table.add_row(text)
    tree = Tree(text)
    tree.add(Text(text, style="red"))
    for renderable in (text, table, tree, status_table(status(text), 0.0)):
        open_console().print(renderable)
    view = LiveView()
    view._same_screen = True  # as on a terminal, without its colours and movements
    view.show(status(text))
    view.lines([text])
    view.note(text)
    view.close()
    bar = ProgressBar(2, lambda: False)
    bar.step(text)
    bar.note(text)
    bar.close()
    shown = terminal.getvalue()
    assert not BAD & set(shown.replace("\r", "")) - {"\x1b"}
    assert "\x1b" not in shown  # it is no terminal, so rich has no colours either
    if "[red]" in text:
        assert text in shown


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_lines_notes_and_errors_show_hostile_texts(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They are what a person reads while a command runs, and why it ended."""
    line = LogLine(text, text, error=text)
    echo(line.formatted())
    echo(text, err=True)
    QuietProgress(lambda: False).note(text)
    PlainView().note(text)
    captured = capsys.readouterr()
    for shown in (captured.out, captured.err):
        assert not BAD & set(shown)
        assert shown


def test_the_lines_of_an_author_are_unchanged_on_a_pipe_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program behind the pipe reads what the author's program has printed."""
    PlainView().lines([HOSTILE["title"]])
    assert capsys.readouterr().out == HOSTILE["title"] + "\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    PlainView().lines([HOSTILE["title"]])
    assert capsys.readouterr().out == printable(HOSTILE["title"]) + "\n"


def test_the_error_of_a_command_is_printable(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may quote the name of a file, a record, or the answer of a server."""

    def fail(*_: object) -> None:
        raise UsageError(HOSTILE["clear the screen"])

    monkeypatch.setattr(CommandGroup, "invoke", fail)
    result = CliRunner().invoke(heron, ["list"])
    assert result.exit_code == 2
    assert result.stderr == f"heron: error: {printable(HOSTILE['clear the screen'])}\n"


def test_json_of_commands_is_printable(capsys: pytest.CaptureFixture[str]) -> None:
    """A person looks at it on a terminal, too."""
    print_json({"name": HOSTILE["eight bit"]})
    shown = capsys.readouterr().out
    assert not BAD & set(shown)
    assert json.loads(shown) == {"name": HOSTILE["eight bit"]}
