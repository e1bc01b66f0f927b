"""The files of a new plugin as text, made from templates, its family's contract and its family's suite."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from pathlib import PurePosixPath
from string import Template

from heron.driver_kit.loading import contract_version
from heron.spi.driver import Driver
from heron_testing.contracts.driver import DriverContract
from heron_testing.scaffold.abstract_methods import AbstractMethod, abstract_methods
from heron_testing.scaffold.import_block import import_block
from heron_testing.scaffold.plugin_names import PluginNames

__all__ = ["plugin_files"]

_NOTHING_TO_DO = {"close"}
"""Methods that a driver without anything open fulfils by doing nothing."""

_HINTS = {
    "scheduler": (
        "The suite runs a stand-in for the executor: give the driver an option with the executor's command,\n"
        "    and set it to ``[*FAKE_EXECUTOR]`` of `heron_testing.contracts.scheduler` in `options`."
    ),
    "statemgr": "A fixture of `heron_testing`, or your own, starts the server; its address belongs into `options`.",
    "metricsink": "`metrics` and `events` read back what has arrived, in the records' own types.",
    "uploader": "`damage` changes the stored bytes without the driver, as a bad disk would.",
}

_DECLARATIONS = {"serializer": "    encoding: ClassVar[int] = 128  # from PRIVATE_ENCODINGS; one of its own for each\n"}
"""What a family's driver declares besides its version and its capabilities."""

_NO_HINT = "Override other fixtures of the suite where the driver needs more than options."


def plugin_files(names: PluginNames, contract: type[Driver], suite: type[DriverContract]) -> dict[PurePosixPath, str]:
    """The text of each file of the plugin, by its path in the plugin's folder."""
    source, tests = PurePosixPath("src", names.package), PurePosixPath("tests")
    values = _values(names, contract, suite)
    return {
        PurePosixPath("pyproject.toml"): _filled("pyproject.toml", values),
        PurePosixPath("README.md"): _filled("README.md", values),
        source / "__init__.py": _filled("__init__.py", values),
        source / "driver.py": _filled("driver.py", values),
        source / "py.typed": "",
        tests / "test_contract.py": _filled("test_contract.py", values),
    }


def _values(names: PluginNames, contract: type[Driver], suite: type[DriverContract]) -> dict[str, str]:
    methods, questions = abstract_methods(contract), abstract_methods(suite)
    return {
        "family": names.family,
        "name": names.name,
        "distribution": names.distribution,
        "package": names.package,
        "group": names.group,
        "stem": names.stem,
        "driver": names.driver,
        "public": ", ".join(f'"{name}"' for name in sorted((names.driver, f"{names.stem}Options"))),
        "base": names.base,
        "contract": f"{contract.__module__}.{contract.__name__}",
        "spi_version": str(contract_version(contract)),
        "suite": suite.__name__,
        "hint": _HINTS.get(names.family, _NO_HINT),
        "declarations": _DECLARATIONS.get(names.family, ""),
        "methods": "\n\n".join(_written(method) for method in methods),
        "questions": "".join(f"\n\n{_asked(question)}" for question in questions),
        "driver_imports": import_block([*_driver_imports(contract), *_named(methods)], names.package),
        "test_imports": import_block([*_test_imports(names, suite), *_named(questions)], names.package),
    }


def _filled(name: str, values: dict[str, str]) -> str:
    template = resources.files(__package__).joinpath("templates", f"{name}.template").read_text(encoding="utf-8")
    return Template(template).substitute(values)


def _written(method: AbstractMethod) -> str:
    if method.name in _NOTHING_TO_DO:
        return f"{method.head}\n        # nothing is open yet"
    return f"{method.head}\n        raise _unwritten(self.{method.name})"


def _asked(question: AbstractMethod) -> str:
    """A method of the test class that only the author can write."""
    return f'{question.head}\n        pytest.fail("write {question.name} in this file")'


def _named(methods: Iterable[AbstractMethod]) -> list[tuple[str, str]]:
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
    return [("pytest", ""), (suite.__module__, suite.__name__), (f"{names.package}.driver", names.driver)]
