"""Whose code a frame runs."""

from __future__ import annotations

import json
import sysconfig
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

import heron.instance
from heron.driver_kit.code_origin import CodeOrigin, code_origin, innermost_lines, module_of

ENGINE = str(Path(heron.instance.__file__).with_name("runner.py"))


@pytest.mark.parametrize(
    ("filename", "module", "expected"),
    [
        ("/home/me/words.py", "words", CodeOrigin.USER),
        ("/home/me/heron_words.py", "heron_words", CodeOrigin.USER),
        ("/home/me/heron/words.py", "words", CodeOrigin.USER),
        (ENGINE, "heron.instance.runner", CodeOrigin.ENGINE),
        ("<emit of stream 'default'>", "", CodeOrigin.ENGINE),
        ("/src/heron_streamlet/runtime/stage_host.py", "heron_streamlet.runtime.stage_host", CodeOrigin.ENGINE),
        (json.__file__, "json", CodeOrigin.LIBRARY),
        (sysconfig.get_path("purelib") + "/numpy/core.py", "numpy.core", CodeOrigin.LIBRARY),
        ("<frozen importlib._bootstrap>", "importlib._bootstrap", CodeOrigin.LIBRARY),
    ],
)
def test_code_is_the_authors_a_librarys_or_the_engines(filename: str, module: str, expected: CodeOrigin) -> None:
    """An author looks at their own lines first, and must not blame the engine's for them."""
    assert code_origin(filename, module) is expected


@pytest.mark.parametrize(
    ("names", "module"),
    [
        ({"__name__": "words", "__spec__": None}, "words"),
        ({"__name__": "__main__"}, "__main__"),
        ({"__name__": "__main__", "__spec__": ModuleSpec("heron_kit.main", None)}, "heron_kit.main"),
    ],
)
def test_a_main_module_is_known_by_its_name(names: dict[str, object], module: str) -> None:
    """A forked process has the frames of the program that forked it at the bottom; they are the engine's."""
    assert module_of(names) == module


def raised_through(*frames: tuple[str, str]) -> BaseException:
    """An error whose traceback has a frame in each of these files and modules, and before them one of this file."""
    raised = ZeroDivisionError()
    names: dict[str, object] = {}
    for filename, module in reversed(frames):
        names = {"__name__": module, "raised": raised, "call": names.get("function")}
        exec(compile("def function():\n    if call: call()\n    raise raised", filename, "exec"), names)  # noqa: S102
    function = names["function"]
    assert callable(function)
    with pytest.raises(ZeroDivisionError) as caught:
        function()
    return caught.value


def test_the_innermost_line_of_each_origin_is_found() -> None:
    """The author's line is the place of a failure, although the engine has called it and a library has raised."""
    error = raised_through(
        (ENGINE, "heron.instance.runner"),
        ("/src/heron_streamlet/stage.py", "heron_streamlet.stage"),
        ("/home/me/outer.py", "outer"),
        ("/home/me/inner.py", "inner"),
        (json.__file__, "json"),
    )
    assert list(innermost_lines(error.__traceback__).items()) == [
        (CodeOrigin.LIBRARY, f"{json.__file__}, line 3"),
        (CodeOrigin.USER, "/home/me/inner.py, line 2"),
        (CodeOrigin.ENGINE, "/src/heron_streamlet/stage.py, line 2"),
    ]


def test_an_error_that_was_never_raised_has_no_lines() -> None:
    """A rejected row has such an error."""
    assert innermost_lines(None) == {}
