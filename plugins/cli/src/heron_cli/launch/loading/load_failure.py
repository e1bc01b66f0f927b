"""Describes an exception of the author's program: where it came from in the program, its source line, its text."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Sequence
from pathlib import Path

from heron.errors import HeronError
from heron_cli.launch.loading.load_report import LoadReport
from heron_cli.launch.loading.program import import_folders, is_part

__all__ = ["load_failure"]


def load_failure(path: Path, error: BaseException, more_folders: Sequence[Path] = ()) -> LoadReport:
    """Return the report of a load of the file at `path` that ended with `error`.

    The first line of the error names file and line of the innermost frame of the program, whose modules are also in
    `more_folders`. The next lines show the source, and the place that raised where this is not the program itself.
    """
    frames = traceback.extract_tb(error.__traceback__)
    folders = import_folders(path, more_folders)
    own = [number for number, each in enumerate(frames) if is_part(Path(each.filename), folders)]
    if not own and isinstance(error, HeronError):  # about the file as a whole
        return LoadReport(str(error))
    shown = "".join(traceback.format_exception(_without_first(error, own[0] if own else 0)))
    if isinstance(error, KeyboardInterrupt):
        return LoadReport(f"{path}: interrupted while it was loaded", shown)
    if isinstance(error, SyntaxError) and error.filename:
        text = f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}; correct the file"
        return LoadReport(f"{text}{_indented(error.text or '')}", shown)
    last = frames[own[-1]] if own else None
    place = f"{last.filename}:{last.lineno}" if last else str(path)
    source = _indented(linecache.getline(last.filename, last.lineno or 0)) if last else ""
    if isinstance(error, SystemExit):
        return LoadReport(f"{place}: {_ended(error)}{source}", shown)
    if isinstance(error, HeronError):
        return LoadReport(f"{place}: {error}{source}", shown)
    text = f"{place}: {type(error).__name__}: {str(error) or 'no message'}; {_remedy(error)}"
    return LoadReport(f"{text}{source}{_raised(frames, own)}", shown)


def _remedy(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return f"correct the file, or install {package}, or heron-compat-{package} if there is such a plugin"
    return "correct the file, it does not load"


def _without_first(error: BaseException, number: int) -> BaseException:
    """Cut the first frames, which are those of the loader, off the traceback of the error."""
    rest = error.__traceback__
    for _ in range(number):
        rest = rest.tb_next if rest else None
    return error.with_traceback(rest)


def _raised(frames: Sequence[traceback.FrameSummary], own: Sequence[int]) -> str:
    """Return the line for the frame that raised; empty where the program itself raised."""
    if not own or own[-1] == len(frames) - 1:
        return ""
    last = frames[-1]
    return f"\n  raised in {last.filename}:{last.lineno}, {last.name}"


def _indented(source: str) -> str:
    return f"\n    {source.strip()}" if source.strip() else ""


def _ended(end: SystemExit) -> str:
    code = end.code
    reason = f": {code}" if isinstance(code, str) else ""
    number = 0 if code is None else code if isinstance(code, int) else 1
    return f"ended with exit code {number} while it was loaded{reason}; it must return to define its topology"
