"""Verifies and packs a loaded topology for a profile; changes nothing anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from heron.errors import PackingError, UsageError
from heron.planner.packing_plan import PackingPlan, check_standbys
from heron.planner.resource_map import Limits
from heron.planner.verify import verify
from heron.spi.driver import DriverRef
from heron.spi.engine import PipelineChoices
from heron.spi.packing import Packing
from heron_cli.catalog.drivers import Drivers
from heron_cli.catalog.other_plugins import check_settings
from heron_cli.catalog.third_party import open_guarded
from heron_cli.launch.loading.loaded import LoadedTopology, LoadingTopology
from heron_cli.launch.named_drivers import named_serializers, named_state_backends
from heron_cli.profiles import ALL_FAMILIES, ENGINE, STORE, Profile
from heron_cli.profiles.overrides import Overrides, engine_settings
from heron_cli.profiles.yaml_file import parse_yaml
from heron_cli.topologies.environment import ProfileChoice, find_profile

__all__ = ["Prepared", "load_target", "plan_target", "prepare"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A verified topology with its packing plan, the limits of a container, and the drivers that it names."""

    loaded: LoadedTopology
    plan: PackingPlan
    limits: Limits
    packing: str
    serializers: tuple[DriverRef, ...] = ()
    state_backends: tuple[DriverRef, ...] = ()


def prepare(loaded: LoadedTopology, profile: Profile, overrides: Overrides, *, without: Sequence[str] = ()) -> Prepared:
    """Verify and pack the topology.

    Raises:
        UsageError: when the topology cannot run; the message has the reason.
    """
    loaded = replace(loaded, definition=overrides.configured(loaded.definition))
    verify(loaded.definition)
    check_settings(loaded.definition.config, f"topology {loaded.definition.name!r}")
    resolve = Drivers(without=without).resolve
    serializers = named_serializers(loaded.definition, resolve)
    packing = open_guarded(profile.packing, Packing)
    try:
        plan = packing.pack(loaded.definition)
    except PackingError as error:
        msg = f"topology {loaded.definition.name!r}: {error}"
        raise UsageError(msg) from error
    settings = engine_settings(profile.engine, loaded.definition, profile.engine.on_failure)
    check_standbys(loaded.definition.name, plan, settings.standbys)
    backends = named_state_backends(loaded.definition, profile, resolve)
    return Prepared(loaded, plan, packing.limits(loaded.definition), profile.packing.name, serializers, backends)


def plan_target(
    choice: ProfileChoice, load: Callable[[PipelineChoices], LoadedTopology], packing: str | None
) -> Prepared:
    """Verify and pack a topology; `packing` names a driver instead of the profile's. Raises as `prepare` does.

    `load` gets what pipelines get.
    """
    if packing is None:
        profile = find_profile(choice)
    else:  # the packing of the profile need not be installed
        profile = find_profile(choice, tuple(each for each in ALL_FAMILIES if each != "packing"))
        same = packing == profile.packing.name
        profile = find_profile(choice) if same else _packed_by(packing, profile, choice.overrides, choice.without)
    return prepare(load(profile.choices), profile, choice.overrides, without=choice.without)


def load_target(target: str | LoadedTopology, arguments: Sequence[str], choice: ProfileChoice) -> LoadedTopology:
    """Load ``FILE[:NAME]`` in a child process; return a loaded topology unchanged."""
    if isinstance(target, LoadedTopology):
        return target
    with LoadingTopology(target, arguments) as loading:
        loading.choose(find_profile(choice, (ENGINE, STORE)).choices)
        return loading.result()


def _packed_by(name: str, profile: Profile, overrides: Overrides, without: Sequence[str] = ()) -> Profile:
    """Return the profile with the packing of that name; options of the profile's own packing do not apply to it.

    Raises:
        ConfigError: when a ``--set packing.KEY`` has a value that cannot be read.
        PluginError: when no such driver is installed, or it does not work.
    """
    section = "packing."
    options = {
        path.removeprefix(section): parse_yaml(text, f"--set {path}")
        for path, text in overrides.profile.items()
        if path.startswith(section) and path != f"{section}driver"
    }
    return replace(profile, packing=Drivers(without=without).resolve("packing", name, options))
