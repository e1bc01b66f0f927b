"""The section ``health`` of a profile: what the health manager may do, and its policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heron.spi.driver import DriverRef
from heron.spi.health_section import HealthSection
from heron.spi.options import decode_options
from heron_cli.profiles.findings import Findings
from heron_cli.profiles.layers import DRIVER, HEALTH
from heron_cli.profiles.located import Located, path_text, plain
from heron_cli.profiles.section import DriverSection, Resolver, driver_section, typed

__all__ = ["POLICIES", "HealthChoice", "policy_sections", "read_health"]

POLICIES = "policies"
"""The key that names the policies: a list of names, or of sections with the key ``driver``."""

_DEFAULT_POLICY = "ds2"


@dataclass(frozen=True, slots=True)
class HealthChoice:
    """The section: its own keys, as JSON and decoded, and the policies, at least one."""

    section: HealthSection
    options: dict[str, object]
    policies: tuple[DriverRef, ...]


def read_health(located: Located, resolve: Resolver, findings: Findings) -> HealthChoice | None:
    """Return the choice; None if the health manager is off, or, with problems, if the section is wrong."""
    own = typed(_without_policies(located), HealthSection)
    section = DriverSection((HEALTH,), DriverRef(HEALTH, "", ""), HealthSection, located, own)
    checked = section.checked(findings)
    if checked is None:
        return None
    decoded = decode_options(checked.options, HealthSection, HEALTH)
    if decoded.mode == "off":
        return None
    given = [
        driver_section(each, (HEALTH, POLICIES, index), resolve, findings)
        for index, each in enumerate(policy_sections(located, findings))
    ]
    found = [each for each in given if each is not None]
    _refuse_repeated(found, findings)
    policies = [each.checked(findings) for each in found]
    return HealthChoice(decoded, checked.options, tuple(each for each in policies if each is not None))


def _refuse_repeated(policies: Sequence[DriverSection], findings: Findings) -> None:
    """The health manager knows a policy by its name: what it decided, and when it is asked next."""
    names: set[str] = set()
    for each in policies:
        if each.ref.name in names:
            text = f"{each.ref.name!r} is there twice; remove one, as a policy runs once"
            findings.add(f"{path_text(each.path)}.{DRIVER}", text, each.driver.origin)
        names.add(each.ref.name)


def policy_sections(located: Located, findings: Findings) -> tuple[Located, ...]:
    """Return the sections of the policies; a name alone is a section without options."""
    given = located.value.get(POLICIES) if isinstance(located.value, dict) else None
    if given is None:
        return (_named(Located(_DEFAULT_POLICY, located.origin)),)
    if not isinstance(given.value, list) or not given.value:
        text = f"{plain(given)!r:.80} is not a list of policies; write `{POLICIES}: [{_DEFAULT_POLICY}]`"
        findings.add(f"{HEALTH}.{POLICIES}", text, given.origin)
        return ()
    return tuple(each if isinstance(each.value, dict) else _named(each) for each in given.value)


def _named(name: Located) -> Located:
    return Located({DRIVER: name}, name.origin)


def _without_policies(located: Located) -> Located:
    given = dict(located.value) if isinstance(located.value, dict) else {}
    given.pop(POLICIES, None)
    if (mode := given.get("mode")) is not None and mode.value is False:  # `off` without quotes, in YAML
        given["mode"] = replace(mode, value="off")
    return Located(given, located.origin)
