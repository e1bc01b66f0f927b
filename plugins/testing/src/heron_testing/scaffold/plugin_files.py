"""The files of a new plugin as text, made from templates and from the contract and suite of its family."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from importlib import resources
from pathlib import PurePosixPath
from string import Template

from heron.driver_kit.loading import contract_version
from heron.spi.driver import Driver
from heron_testing.contracts.driver import DriverContract
from heron_testing.scaffold.contract_methods import ContractMethod, abstract_methods, hook_methods
from heron_testing.scaffold.plugin_names import PluginNames

__all__ = ["driver_files", "import_block", "observer_files"]

_LINE_CHARACTERS = 120

_NOTHING_TO_DO = {"close"}
"""Methods that do nothing in a driver that has nothing open."""

_HINTS = {
    "scheduler": (
        "The suite runs a fake executor: give the driver an option for the executor's command,\n"
        "    and set it to ``[*FAKE_EXECUTOR]`` of `heron_testing.contracts.scheduler` in `options`."
    ),
    "statemgr": "Start the server in a fixture, and put its address into `options`.",
    "metricsink": "`metrics` and `events` read back what has arrived, as the types of the records.",
    "uploader": "`damage` changes the stored bytes without the driver, as a bad disk would.",
}

_DECLARATIONS = {
    "serializer": "    encoding: ClassVar[int] = 128  # from PRIVATE_ENCODINGS; unique for each serializer\n"
}
"""What the driver of a family declares besides its version and its capabilities."""

_NO_HINT = "Override other fixtures of the suite where the driver needs more than options."


def driver_files(names: PluginNames, contract: type[Driver], suite: type[DriverContract]) -> dict[PurePosixPath, str]:
    """Return the text of each file of a driver's plugin, by its path in the plugin's folder."""
    methods, questions = abstract_methods(contract), abstract_methods(suite)
    values = {
        **_name_values(names, "driver", f"{names.family} driver"),
        "public": ", ".join(f'"{name}"' for name in sorted((names.class_name, f"{names.stem}Options"))),
        "base": names.base,
        "contract": f"{contract.__module__}.{contract.__name__}",
        "spi_version": str(contract_version(contract)),
        "suite": suite.__name__,
        "hint": _HINTS.get(names.family, _NO_HINT),
        "declarations": _DECLARATIONS.get(names.family, ""),
        "methods": "\n\n".join(_unwritten(method) for method in methods),
        "questions": "".join(f"\n\n{_question(question)}" for question in questions),
        "driver_imports": import_block([*_driver_imports(contract), *_named(methods)], names.package),
        "test_imports": import_block([*_test_imports(names, suite), *_named(questions)], names.package),
    }
    return _files(names, values, "driver", "test_contract", "README.md")


def observer_files(names: PluginNames) -> dict[PurePosixPath, str]:
    """Return the text of each file of an observer's plugin, by its path in the plugin's folder."""
    imports = [
        ("importlib.metadata", ""),
        ("logging", ""),
        ("pytest", ""),
        ("heron_testing.observers", "announce"),
        (f"{names.package}.observer", names.class_name),
    ]
    values = {
        **_name_values(names, "observer", "observer"),
        "methods": "\n\n".join(_logged(method) for method in hook_methods()),
        "test_imports": import_block(imports, names.package),
    }
    return _files(names, values, "observer", "test_observer", "README-observer.md")


def import_block(imports: Iterable[tuple[str, str]], first_party: str) -> str:
    """Return import statements, ordered as ruff orders them.

    `imports` are pairs of module and name; an empty name imports the module. `first_party` is the plugin's own package:
    its imports come last, after the standard library and third-party packages.
    """
    names: dict[str, set[str]] = defaultdict(set)
    for module, name in imports:
        names[module].add(name)
    sections: list[list[str]] = [[], [], []]
    for module in sorted(names, key=lambda each: ("" not in names[each], each)):
        top = module.partition(".")[0]
        place = 2 if top == first_party else 0 if top in sys.stdlib_module_names else 1
        sections[place].append(_statement(module, names[module]))
    return "\n\n".join("\n".join(section) for section in sections if section)


def _statement(module: str, names: set[str]) -> str:
    if "" in names:
        return f"import {module}"
    ordered = sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= _LINE_CHARACTERS:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in ordered), ")"])


def _name_values(names: PluginNames, module: str, kind: str) -> dict[str, str]:
    return {
        "kind": kind,
        "family": names.family,
        "name": names.name,
        "distribution": names.distribution,
        "package": names.package,
        "group": names.group,
        "stem": names.stem,
        "class_name": names.class_name,
        "module": module,
    }


def _files(names: PluginNames, values: dict[str, str], module: str, test: str, readme: str) -> dict[PurePosixPath, str]:
    source = PurePosixPath("src", names.package)
    return {
        PurePosixPath("pyproject.toml"): _filled("pyproject.toml", values),
        PurePosixPath("README.md"): _filled(readme, values),
        source / "__init__.py": _filled("__init__.py", values),
        source / f"{module}.py": _filled(f"{module}.py", values),
        source / "py.typed": "",
        PurePosixPath("tests", f"{test}.py"): _filled(f"{test}.py", values),
    }


def _filled(name: str, values: dict[str, str]) -> str:
    template = resources.files(__package__).joinpath("templates", f"{name}.template").read_text(encoding="utf-8")
    return Template(template).substitute(values)


def _unwritten(method: ContractMethod) -> str:
    if method.name in _NOTHING_TO_DO:
        return f"{method.head}\n        # nothing is open yet"
    return f"{method.head}\n        raise _unwritten(self.{method.name})"


def _logged(method: ContractMethod) -> str:
    arguments = ", ".join([f'"{method.name}"', *(f"{each}={each}" for each in method.parameters)])
    line = f"        self._log_event({arguments})"
    if len(line) > _LINE_CHARACTERS:
        line = f"        self._log_event(\n            {arguments}\n        )"
    return f"{method.head}\n{line}"


def _question(method: ContractMethod) -> str:
    """Return a method of the test class that only the author can write."""
    return f'{method.head}\n        pytest.fail("write {method.name} in this file")'


def _named(methods: Iterable[ContractMethod]) -> list[tuple[str, str]]:
    return [each for method in methods for each in method.imports]


def _driver_imports(contract: type[Driver]) -> list[tuple[str, str]]:
    return [
        ("collections.abc", "Callable"),
        ("collections.abc", "Mapping"),
        ("dataclasses", "dataclass"),
        ("typing", "ClassVar"),
        ("typing", "Self"),
        ("heron.errors", "PluginError"),
        ("heron.spi.options", "decode_options"),
        (contract.__module__, contract.__name__),
    ]


def _test_imports(names: PluginNames, suite: type[DriverContract]) -> list[tuple[str, str]]:
    return [("pytest", ""), (suite.__module__, suite.__name__), (f"{names.package}.driver", names.class_name)]
