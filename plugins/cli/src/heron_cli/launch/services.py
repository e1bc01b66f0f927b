"""The services that run beside a topology in its container 0, as the profile asks for them.

A service is a module of another distribution, which an entry point in the group ``heron.service`` names. The command
knows nothing else of it: it passes the drivers of the profile on, and what the profile says about the service.
"""

from __future__ import annotations

from heron.spi.scheduler import ServiceSpec
from heron_cli.catalog.other_plugins import service_module
from heron_cli.profiles import Profile

__all__ = ["profile_services"]

_HEALTH = "health"
_DISTRIBUTION = "heron-health-manager"


def profile_services(profile: Profile) -> tuple[ServiceSpec, ...]:
    """Return the services of a profile: the health manager, unless it is off.

    Only a health manager that acts gets the control key, and the drivers that an update needs.

    Raises:
        MissingDriverError: when the health manager is not installed.
    """
    health = profile.health
    if health is None:
        return ()
    acts = health.section.mode == "act"
    drivers = (profile.statemgr, profile.scheduler, *health.policies)
    if acts:
        others = (profile.uploader, profile.packing, profile.checkpoint, profile.state, *profile.metricsinks)
        drivers = (*drivers, *(each for each in others if each is not None))
    options: dict[str, object] = {"section": health.options, "profile": profile.name}
    return (ServiceSpec(_HEALTH, service_module(_HEALTH, _DISTRIBUTION), acts, drivers, options),)
