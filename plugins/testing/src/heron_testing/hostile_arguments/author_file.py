"""The author's file of the matrix: the engine must name its lines, so it is text, and no part of this package."""

from __future__ import annotations

import ast
import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from heron_testing.hostile_arguments.arguments import ARGUMENTS, CLASSES
from heron_testing.hostile_arguments.calls import CALLS, Call, Caller

FILE_NAME = "hostile_author.py"

__all__ = ["FILE_NAME", "author_text", "class_at", "first_line_of_calls", "line_of", "loaded"]

_HEAD = '''"""Calls with arguments that no author means."""

import numpy

from heron.api import (
    CountMetric, Grouping, IMetric, MultiReducedMetric, ReducedMetric, Stream, TopologyBuilder, ValueState,
    default_serializer, global_metrics,
)
from heron_streamlet import Builder, Config, Runner, count_window, session_window, sliding_window, tumbling_window
from heron_testing.hostile_arguments.components import HostileBolt, HostileGrouping, HostileSpout, Sink, Source
'''
_COMPONENTS = """

class AuthorBolt(HostileBolt):
    def initialize(self, config, context):
        self.calls, self.arguments = CALLS, ARGUMENTS
        super().initialize(config, context)

    def choose(self, number, argument):
        self.emit([number, argument], "chosen")


class AuthorSpout(HostileSpout):
    def initialize(self, config, context):
        self.calls, self.arguments = CALLS, ARGUMENTS
        super().initialize(config, context)


class AuthorSink(Sink):
    def process(self, tup):
        super().process(tup)


class AuthorGrouping(HostileGrouping):
    def choose_tasks(self, values):
        return CALLS[values[0]](self, None, None, ARGUMENTS[values[1]]())

"""

_GIVEN = {Caller.FILE: "builder, source, X", Caller.PIPELINE: "builder, stream, answer, answers, X"}
"""The names that a line finds; all others find those of a component."""


@lru_cache
def author_text() -> str:
    """The text of the file; each call has a function with one line."""
    arguments = "".join(f"    {name!r}: lambda: {each},\n" for name, each in ARGUMENTS.items())
    text = f"{_HEAD}\n{CLASSES}{_COMPONENTS}\nARGUMENTS = {{\n{arguments}}}\nCALLS = []\n\n"
    for call in CALLS:
        given = _GIVEN.get(call.caller, "self, context, tup, X")
        returned = "return " if call.caller is Caller.PIPELINE else ""
        text += f"\n@CALLS.append\ndef call({given}):\n    {returned}{call.line}\n"
    return text


@lru_cache
def line_of(call: Call) -> int:
    """The number of the line of a call in the file."""
    return first_line_of_calls() + 4 * CALLS.index(call) + 3


@lru_cache
def first_line_of_calls() -> int:
    """The number of the empty line above the first call."""
    return author_text().split("\n@CALLS.append")[0].count("\n") + 1


@lru_cache
def class_at(line: int) -> str:
    """The name of the class of the file that has this line; empty if none has."""
    classes = [each for each in ast.parse(author_text()).body if isinstance(each, ast.ClassDef)]
    return next((each.name for each in classes if each.lineno <= line <= (each.end_lineno or 0)), "")


def loaded(folder: Path) -> ModuleType:
    """Write the file to a folder, and import it."""
    file = folder / "hostile_author.py"
    if file.exists():
        return sys.modules["hostile_author"]
    file.write_text(author_text(), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("hostile_author", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["hostile_author"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
