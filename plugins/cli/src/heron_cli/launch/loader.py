"""The child process that runs the author's file and says what it found: ``python -m heron_cli.launch.loader``.

It has a process of its own because the file is a program: it may print, parse its arguments, end, crash or change
whatever it likes in the interpreter. The answer travels through a pipe, so stdout and stderr stay the author's.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from heron.api.definition import ComponentDefinition, TopologyDefinition
from heron.driver_kit.parent_process import bind_to_parent
from heron.errors import HeronError, UsageError
from heron.kernel.author_topology import choose_topology
from heron.kernel.user_code import check_module_name, load_class, load_user_code
from heron.planner.codec import encode
from heron_cli.launch.first_party import first_party_files
from heron_cli.launch.load_report import LoadReport

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Loads as ``DESCRIPTOR FILE NAME [ARGS...]`` says (NAME may be empty) and writes the report into DESCRIPTOR."""
    bind_to_parent()
    sys.dont_write_bytecode = True  # a command leaves nothing in the author's folder
    descriptor, file, name, *argv = arguments
    pipe = int(descriptor)
    os.set_inheritable(pipe, False)  # a program that the author starts must not keep the pipe open
    report = _report(Path(file), name or None, argv)
    sys.stdout.flush()  # before the command goes on and prints something of its own
    sys.stderr.flush()
    with os.fdopen(pipe, "wb") as answer:
        answer.write(msgspec.json.encode(report))
    return 1 if report.error else 0


def _report(path: Path, name: str | None, argv: Sequence[str]) -> LoadReport:
    try:
        check_module_name(path)
        return _load(path, name, argv)
    except HeronError as error:
        return LoadReport(error=str(error))
    except KeyboardInterrupt:
        return LoadReport(error=f"{path}: interrupted while it was loaded")
    except SystemExit as end:
        return LoadReport(error=_ended(path, end))
    except BaseException as error:  # it is the author's program, anything may come
        return LoadReport(error=_failed(path, error))


def _load(path: Path, name: str | None, argv: Sequence[str]) -> LoadReport:
    before = set(sys.modules)
    code = load_user_code(path, argv)
    definition = _at_home(choose_topology(code, name).definition(), path.stem)
    for component in definition.components:
        _check_entry(component, path)
    new = [module for each, module in list(sys.modules.items()) if each not in before]
    return LoadReport(
        definition=encode(definition).decode(),
        module=path.stem,
        script=code.ran_main_block,
        root=str(path.parent),
        files=first_party_files(path, new),
    )


def _at_home(definition: TopologyDefinition, module: str) -> TopologyDefinition:
    """The definition with ``__main__:Class`` named after the module that every process loads."""
    return replace(
        definition,
        components=tuple(
            replace(
                each,
                entry=_renamed(each.entry, module),
                inputs=tuple(
                    replace(one, grouping=replace(one.grouping, entry=_renamed(one.grouping.entry, module)))
                    if one.grouping.entry
                    else one
                    for one in each.inputs
                ),
            )
            for each in definition.components
        ),
    )


def _renamed(entry: str, module: str) -> str:
    return f"{module}:{entry.removeprefix('__main__:')}" if entry.startswith("__main__:") else entry


def _check_entry(component: ComponentDefinition, path: Path) -> None:
    try:
        load_class(component.entry)
        for each in component.inputs:
            if each.grouping.entry:
                load_class(each.grouping.entry)
    except (UsageError, ImportError) as error:
        msg = f"{path}: component {component.name!r}: {error}"
        raise UsageError(msg) from error


def _failed(path: Path, error: BaseException) -> str:
    """One line: the author's file and line, the exception, and what it was doing."""
    place = str(path)
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{error.filename}:{error.lineno}"
    else:
        lines = traceback.extract_tb(error.__traceback__)
        ours = [each for each in lines if Path(each.filename).is_relative_to(path.parent)]
        if ours:
            place = f"{ours[-1].filename}:{ours[-1].lineno}"
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{place}: {type(error).__name__}: {text or 'no message'}; correct the file, it does not load"


def _ended(path: Path, end: SystemExit) -> str:
    code = end.code
    said = f": {code}" if isinstance(code, str) else ""
    number = 0 if code is None else code if isinstance(code, int) else 1
    return f"{path}: ended with exit code {number} while it was loaded{said}; it must return to define its topology"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
