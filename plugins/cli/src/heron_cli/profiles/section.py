"""The section of one driver: finds the driver, and checks the section against its schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol, cast

from heron.driver_kit.loading import load_object
from heron.errors import ConfigError, PluginError
from heron.spi.driver import Driver, DriverRef, ReferringOption
from heron.spi.options import OptionField, OptionProblem, option_fields, option_problems
from heron_cli.profiles.findings import Findings
from heron_cli.profiles.layers import DRIVER
from heron_cli.profiles.located import Layer, Located, Step, leaves, path_text, plain, value_at
from heron_cli.profiles.references import is_reference
from heron_cli.profiles.yaml_file import parse_located

__all__ = ["DriverSection", "Resolver", "driver_section", "read_reference", "typed"]

_VARIABLE = re.compile(r"\$\{env:([^{}]+)\}")
_FILE = re.compile(r"\$\{file:[^{}]+\}")


class Resolver(Protocol):
    """Finds an installed driver. Commands use `heron_cli.catalog.drivers.Drivers.resolve`."""

    def __call__(self, family: str, name: str, options: Mapping[str, object]) -> DriverRef:
        """Return the driver as a reference; raises PluginError when no working driver has the name."""
        ...


@dataclass(frozen=True, slots=True)
class DriverSection:
    """A section whose driver was found; `ref` has no options yet, and `options` is without the key ``driver``."""

    path: tuple[Step, ...]
    ref: DriverRef
    schema: type
    driver: Located
    options: Located

    def field_at(self, steps: tuple[Step, ...]) -> OptionField | None:
        """Return the field of the schema at a path within the options, or the field that contains it."""
        return _field_at(self.schema, steps)

    def checked(self, findings: Findings) -> DriverRef | None:
        """Return the driver with its options; None when the options have problems."""
        secrets = self._secrets(findings)
        problems = option_problems(cast("Mapping[str, object]", plain(self.options)), self.schema)
        for each in problems:
            path = path_text((*self.path, *each.path))
            if findings.has(path) or (not each.path and findings.has_below(path)):
                continue  # a problem of a part can make the whole section wrong
            at = value_at(self.options, each.path)
            findings.add(path, f"{each.text}{_value_of(each, at)}", at.origin)
        if problems:
            return None
        options = cast("dict[str, object]", plain(self.options))
        referring = tuple(
            ReferringOption(steps, leaf.shown)
            for steps, leaf in leaves(self.options)
            if leaf.shown is not None and "${" in leaf.shown
        )
        return replace(self.ref, options=options, secrets=tuple(sorted(secrets)), referring=referring)

    def _secrets(self, findings: Findings) -> set[str]:
        """Return the texts that no message may show, and hide them in messages from now on."""
        found: set[str] = set()
        for steps, leaf in leaves(self.options):
            field = self.field_at(steps)
            declared = field is not None and field.secret
            if declared and isinstance(leaf.value, str) and leaf.value:
                found.add(leaf.value)
                if leaf.shown is not None and is_reference(leaf.shown):
                    findings.resolved.setdefault(leaf.value, leaf.shown)
                else:  # the text around a reference is a part of the secret
                    findings.resolved.update(dict.fromkeys((leaf.value, leaf.shown or leaf.value), "(secret)"))
                findings.variables.update(_VARIABLE.findall(leaf.shown or ""))
                if leaf.origin.layer is Layer.ENVIRONMENT:
                    findings.variables.add(leaf.origin.place)
            references = (_VARIABLE, _FILE) if declared else (_FILE,)
            named = {match[0] for each in references for match in each.finditer(leaf.shown or "")}
            found.update(text for text, reference in findings.resolved.items() if reference in named)
        return found


def _value_of(problem: OptionProblem, at: Located) -> str:
    """Return the value for a message; "" for a section or list, whose parts may be values of references."""
    if at.shown is not None:
        return f"; it is {at.shown}"
    return f"; it is {problem.value!r:.80}" if problem.has_value and not isinstance(at.value, dict | list) else ""


def driver_section(
    section: Located, path: tuple[Step, ...], resolve: Resolver, findings: Findings
) -> DriverSection | None:
    """Return the section with its driver; None, with a problem, when it names no working driver."""
    where = path_text(path)
    if not isinstance(section.value, dict):
        findings.add(where, f"{plain(section)!r:.80} is not a section of keys and values", section.origin)
        return None
    driver = section.value.get(DRIVER)
    name = None if driver is None else driver.value if driver.text is None else driver.text
    if driver is None or not isinstance(name, str) or not name:
        origin = section.origin if driver is None else driver.origin
        findings.add(f"{where}.{DRIVER}", f"{name!r} is not the name of a driver; see `heron plugins list`", origin)
        return None
    try:
        ref = resolve(str(path[0]), name, {})
        found = cast("type[Driver]", load_object(ref.entry, f"{path[0]} driver {name!r}"))
    except PluginError as error:
        findings.add(f"{where}.{DRIVER}", error, driver.origin)
        return None
    options = {key: value for key, value in section.value.items() if key != DRIVER}
    return DriverSection(
        path, ref, found.options_type, driver, typed(Located(options, section.origin), found.options_type)
    )


def typed(located: Located, schema: type, path: tuple[Step, ...] = ()) -> Located:
    """Return the value with the types of the schema where it came as text."""
    field = _field_at(schema, path)
    if located.text is not None and field is not None and field.is_text:
        return replace(located, value=located.text)
    if isinstance(located.value, dict):
        return replace(located, value={key: typed(each, schema, (*path, key)) for key, each in located.value.items()})
    return located if located.text is None else read_reference(located)


def _field_at(schema: type | None, steps: tuple[Step, ...]) -> OptionField | None:
    found = None
    for step in steps:
        if schema is None:
            break
        fields = {each.name: each for each in option_fields(schema)}
        if step not in fields:
            return None
        found = fields[str(step)]
        schema = found.schema
    return found


def read_reference(located: Located) -> Located:
    """Return the value of a reference for a setting that is not text, such as a number; other values as they are."""
    if located.shown is None:
        return located
    try:
        value = parse_located(located.text or "", located.origin).value
    except ConfigError:
        return located
    return located if isinstance(value, dict | list) else replace(located, value=value)
