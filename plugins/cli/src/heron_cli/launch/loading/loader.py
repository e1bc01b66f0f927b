"""The child process ``python -m heron_cli.launch.loading.loader``: runs the author's file and reports its topology.

The file is a program: it may print, parse its arguments, end, crash or change the interpreter. It therefore runs in a
separate process. The report goes through a pipe, so stdout and stderr belong to the author.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec

from heron.api.definition import ComponentDefinition, TopologyDefinition
from heron.api.names import OWN_MODULE
from heron.api.state import StatefulComponent
from heron.driver_kit.parent_process import bind_to_parent
from heron.errors import UsageError
from heron.kernel.author_topology import choose_topology
from heron.kernel.user_code import check_module_name, load_class, load_user_code, serve_package
from heron.spi.engine import PipelineChoices, offer_pipeline_choices
from heron.state_nodes.plans import encode_plan
from heron_cli.launch.loading.compat_plugin import PYTHON_SUFFIX, compat_format, compat_package
from heron_cli.launch.loading.load_failure import load_failure
from heron_cli.launch.loading.load_report import LoadReport, StateReport
from heron_cli.launch.loading.program import find_program

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Load FILE and write the report: ``REPORT CHOICES START FOLDER FILE NAME [ARGS...]``, where NAME may be empty.

    FOLDER is empty, or a folder for the program of a FILE that is not written in Python. REPORT, CHOICES and START are
    descriptors. The command writes what its profile chooses for pipelines when it knows it; only
    the author of a pipeline waits for it. FILE is loaded when something comes from START, if it is not below 0.
    """
    bind_to_parent()
    sys.dont_write_bytecode = True  # a command writes nothing into the author's folder
    descriptor, choices, start, folder, file, name, *argv = arguments
    if int(start) >= 0 and not os.read(int(start), 1):
        return 0  # it is not needed any more
    pipe = int(descriptor)
    for each in (pipe, int(choices)):
        os.set_inheritable(each, False)  # a child of the author's program must not keep the pipe open
    offer_pipeline_choices(cache(lambda: _choices(int(choices))))
    report = _report(Path(file), name or None, argv, folder)
    sys.stdout.flush()  # before the command prints its own output
    sys.stderr.flush()
    with os.fdopen(pipe, "wb") as answer:
        answer.write(msgspec.json.encode(report))
    return 1 if report.error else 0


def _choices(descriptor: int) -> PipelineChoices:
    with os.fdopen(descriptor, "rb") as answer:
        text = answer.read()
    return msgspec.json.decode(text, type=PipelineChoices) if text else PipelineChoices()


def _report(path: Path, name: str | None, argv: Sequence[str], folder: str) -> LoadReport:
    folders: tuple[Path, ...] = ()
    try:
        if found := compat_format(path):
            folders = (Path(folder),)
            return _load(found.write_program(path, name, argv, *folders), name, argv, folders)
        _check_file(path)
        if compat := compat_package(path):
            folders = serve_package(compat).project_folders(path)
        return replace(_load(path, name, argv, folders), compat=(compat,) if compat else ())
    except BaseException as error:  # the author's program may raise any exception
        return load_failure(path, error, folders)


def _check_file(path: Path) -> None:
    try:
        check_module_name(path)
    except UsageError as error:
        if path.suffix in ("", PYTHON_SUFFIX):
            raise
        msg = f"{error}, or install a compat plugin that reads {path.suffix} files"
        raise UsageError(msg) from error


def _load(path: Path, name: str | None, argv: Sequence[str], folders: Sequence[Path]) -> LoadReport:
    before = set(sys.modules)
    code = load_user_code(path, argv, folders)
    definition = _at_home(choose_topology(code, name).definition(), path.stem)
    classes = {each.name: _checked_class(each, path) for each in definition.components}
    new = [module for each, module in list(sys.modules.items()) if each not in before]
    program = find_program(path, new, folders)
    return LoadReport(
        definition=encode_plan(definition).decode(),
        module=path.stem,
        script=code.ran_main_block,
        root=str(program.root),
        files=program.files,
        import_paths=program.import_paths,
        states={name: _state(each) for name, each in classes.items() if issubclass(each, StatefulComponent)},
    )


def _state(component: type[StatefulComponent]) -> StateReport:
    return StateReport(
        component.state_version,
        component.migrate is not StatefulComponent.migrate,
        component.migrate_keyed is not StatefulComponent.migrate_keyed,
    )


def _at_home(definition: TopologyDefinition, module: str) -> TopologyDefinition:
    """Return the definition with the module that every process loads in the place of ``__main__``."""
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
    home, _, name = entry.partition(":")
    return f"{module}:{name}" if home == OWN_MODULE else entry


def _checked_class(component: ComponentDefinition, path: Path) -> type:
    try:
        found = load_class(component.entry)
        for each in component.inputs:
            if each.grouping.entry:
                load_class(each.grouping.entry)
    except (UsageError, ImportError) as error:
        msg = f"{path}: component {component.name!r}: {error}"
        raise UsageError(msg) from error
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
