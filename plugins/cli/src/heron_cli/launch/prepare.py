"""From a file and a profile to something that can be run or shown, with nothing changed anywhere yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from heron.driver_kit.loading import open_driver
from heron.driver_kit.redaction import set_command_secrets
from heron.errors import PackingError, UsageError
from heron.planner.packing_plan import PackingPlan, check_standbys
from heron.planner.verify import verify
from heron.spi.driver import DriverRef
from heron.spi.packing import Packing
from heron_cli.catalog.drivers import Drivers
from heron_cli.commands.overrides import Overrides, engine_settings
from heron_cli.launch.loaded import LoadedTopology
from heron_cli.launch.named_serializers import named_serializers
from heron_cli.profiles import Profile, load_profile
from heron_cli.profiles.yaml_file import parse_yaml

__all__ = ["Prepared", "find_profile", "packed_by", "prepare"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A verified topology, its packing plan, and the serializers that it names."""

    loaded: LoadedTopology
    plan: PackingPlan
    serializers: tuple[DriverRef, ...] = ()


def find_profile(name: str, config_path: Path | None, overrides: Overrides) -> Profile:
    """The profile with its drivers found.

    From now on what this command says does not show its secrets.

    Raises:
        ConfigError: when it, or something in it, is unknown or wrong.
        PluginError: when a driver is missing or does not work.
    """
    profile = load_profile(name, Drivers().resolve, config_path=config_path, overrides=overrides.profile)
    set_command_secrets(profile.secrets)
    return profile


def packed_by(name: str, profile: Profile, overrides: Overrides) -> Profile:
    """The profile with the packing of that name; the options of the profile's own packing stay with that one.

    Raises:
        ConfigError: when a ``--set packing.KEY`` has a value that cannot be read.
        PluginError: when no such driver is installed, or it does not work.
    """
    if name == profile.packing.name:
        return profile
    section = "packing."
    options = {
        path.removeprefix(section): parse_yaml(text, f"--set {path}")
        for path, text in overrides.profile.items()
        if path.startswith(section) and path != f"{section}driver"
    }
    return replace(profile, packing=Drivers().resolve("packing", name, options))


def prepare(loaded: LoadedTopology, profile: Profile, overrides: Overrides) -> Prepared:
    """Verifies and packs the topology.

    Raises:
        UsageError: when it cannot run; says why.
    """
    loaded = replace(loaded, definition=overrides.configured(loaded.definition))
    verify(loaded.definition)
    serializers = named_serializers(loaded.definition, Drivers().resolve)
    try:
        plan = open_driver(profile.packing, Packing).pack(loaded.definition)
    except PackingError as error:
        msg = f"topology {loaded.definition.name!r}: {error}"
        raise UsageError(msg) from error
    settings = engine_settings(profile.engine, loaded.definition, profile.engine.on_failure)
    check_standbys(loaded.definition.name, plan, settings.standbys)
    return Prepared(loaded, plan, serializers)
