"""The section ``health`` of a profile, and the service that follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from heron.errors import MissingDriverError
from heron_cli.catalog.other_plugins import service_module
from heron_cli.launch.services import profile_services
from heron_cli.profiles import Resolver, list_settings

if TYPE_CHECKING:
    from conftest import Reading

PROFILE = """
scheduler: {driver: local}
statemgr: {driver: localfs, root: /state}
uploader: {driver: localfs}
packing: {driver: roundrobin}
metricsink: [{driver: file, directory: /logs}]
checkpoint: {driver: localfs}
"""


@pytest.mark.parametrize("section", ["", "health: {mode: off, policies: [absent]}\n"])
def test_without_the_section_or_with_off_nothing_runs(reading: Reading, section: str) -> None:
    """A profile that needs no health manager needs no distribution for it either."""
    profile = reading.load(PROFILE + section)
    assert profile.health is None
    assert profile_services(profile) == ()


def test_the_default_advises_with_ds2_and_the_read_only_key(reading: Reading) -> None:
    """It gets no driver that only an update needs."""
    (service,) = profile_services(reading.load(PROFILE + "health: {}\n"))
    assert (service.name, service.module, service.control) == ("health", "heron_health_manager.manager_process", False)
    assert [(each.family, each.name) for each in service.drivers] == [
        ("statemgr", "localfs"),
        ("scheduler", "local"),
        ("health", "ds2"),
    ]


def test_act_gets_the_control_key_and_the_drivers_of_an_update(reading: Reading) -> None:
    """Policies may have options, and bounds travel as they were written."""
    text = "health: {mode: act, policies: [ds2, {driver: own}], components: {count: {min: 2, max: 8}}}\n"
    (service,) = profile_services(reading.load(PROFILE + text))
    assert service.control
    families = [each.family for each in service.drivers]
    assert families == ["statemgr", "scheduler", "health", "health", "uploader", "packing", "checkpoint", "metricsink"]
    section = {"mode": "act", "components": {"count": {"min": 2, "max": 8}}}
    assert service.options == {"section": section, "profile": "mine"}


def test_a_command_can_switch_it_on(reading: Reading) -> None:
    """For one run, without a profile of one's own."""
    profile = reading.load(PROFILE, **{"health.mode": "act", "health.policies": "[dhalion]", "health.cool_down_s": "5"})
    assert profile.health is not None
    assert [each.name for each in profile.health.policies] == ["dhalion"]
    assert (profile.health.section.mode, profile.health.section.cool_down_s) == ("act", 5.0)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{mode: on}", "health.mode: "),
        ("{mod: act}", "health.mod: unknown key (nearest: 'mode')"),
        ("{policies: ds2}", "health.policies: 'ds2' is not a list of policies; write `policies: [ds2]`"),
        ("{policies: []}", "health.policies: [] is not a list of policies"),
        ("{policies: [absent]}", "health.policies[0].driver: no health driver 'absent' is installed"),
        ("{policies: [{period_s: 1}]}", "health.policies[0].driver: None is not the name of a driver"),
        (
            "{policies: [ds2, {driver: ds2, drain_s: 300}]}",
            "health.policies[1].driver: 'ds2' is there twice; remove one, as a policy runs once",
        ),
        ("{components: {count: {min: 3, max: 2}}}", "min 3 is above max 2"),
        ("{components: {count: {min: 0}}}", "health.components"),
        ("{max_containers: 0}", "health.max_containers: "),
        ("{least_confidence: 2}", "health.least_confidence: "),
        ("[act]", "health: not a section of keys and values"),
    ],
)
def test_a_mistake_is_named(reading: Reading, section: str, message: str) -> None:
    """The command refuses before anything starts."""
    problems = reading.problems(PROFILE + f"health: {section}\n")
    assert any(message in each for each in problems), problems


def test_the_settings_are_listed_with_their_defaults(reading: Reading, resolve: Resolver) -> None:
    """`heron profiles show` explains the section."""
    reading.write(PROFILE + "health: {mode: act}\n")
    listed = list_settings("mine", resolve, config_path=reading.folder, environ={})
    found = {each.path: each.value for each in listed.settings if each.path.startswith("health")}
    assert found["health.mode"] == "act"
    assert found["health.cool_down_s"] == 60.0
    assert found["health.policies[0].driver"] == "ds2"


def test_a_service_that_is_not_installed_is_named_with_its_distribution() -> None:
    """The remedy is a line to copy."""
    with pytest.raises(MissingDriverError, match="`pip install heron-other`"):
        service_module("other", "heron-other")
