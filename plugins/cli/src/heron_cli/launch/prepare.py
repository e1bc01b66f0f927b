"""Verifies and packs a loaded topology for a profile; changes nothing anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from heron.api.api_constants import TOPOLOGY_COLUMNS, TOPOLOGY_SERIALIZER, TOPOLOGY_STATE_BACKEND
from heron.api.config import merged_config, setting
from heron.api.definition import TopologyDefinition
from heron.driver_kit.loading import load_object
from heron.errors import ConfigError, PackingError, PluginError, UsageError
from heron.planner.packing_plan import PackingPlan, check_standbys
from heron.planner.resource_map import Limits
from heron.planner.verify import verify
from heron.spi.driver import DriverRef
from heron.spi.engine import PipelineChoices
from heron.spi.packing import Packing
from heron.spi.serializer import Serializer
from heron_cli.catalog.drivers import Drivers
from heron_cli.catalog.other_plugins import check_settings
from heron_cli.catalog.third_party import open_guarded
from heron_cli.launch.loading.loaded import LoadedTopology, LoadingTopology
from heron_cli.profiles import ALL_FAMILIES, ENGINE, STORE, Profile, Resolver
from heron_cli.profiles.overrides import Overrides, engine_settings
from heron_cli.profiles.yaml_file import parse_yaml
from heron_cli.topologies.environment import ProfileChoice, find_profile

__all__ = ["Prepared", "load_target", "named_serializers", "named_state_backends", "plan_target", "prepare"]

_CORE_SERIALIZERS = ("pickle", "plain")  # every instance has them
_COLUMN_SERIALIZER = "arrow"
_MEMORY = "memory"


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


def named_serializers(topology: TopologyDefinition, resolve: Resolver) -> tuple[DriverRef, ...]:
    """Return the serializers that components name, by name, without the core's own.

    Raises:
        PluginError: when one is not installed or does not work; names the component.
        ConfigError: when two serializers have the same number, so that readers could not distinguish them.
    """
    users = {name: (TOPOLOGY_SERIALIZER, user) for name, user in _users(topology, TOPOLOGY_SERIALIZER).items()}
    if (user := _users(topology, TOPOLOGY_COLUMNS).get(str(True))) is not None:
        users[_COLUMN_SERIALIZER] = (TOPOLOGY_COLUMNS, user)
    refs: dict[int, DriverRef] = {}
    for name, (key, component_name) in sorted(users.items()):
        if name in _CORE_SERIALIZERS:
            continue
        try:
            ref = resolve("serializer", name, {})
        except PluginError as error:
            msg = f"component {component_name!r}: {key}: {error}"
            raise PluginError(msg) from error
        encoding = cast("type[Serializer]", load_object(ref.entry)).encoding
        if other := refs.get(encoding):
            msg = (
                f"{TOPOLOGY_SERIALIZER}: {other.name!r} and {name!r} both write encoding {encoding}; "
                "use one of them in a topology"
            )
            raise ConfigError(msg)
        refs[encoding] = ref
    return tuple(refs.values())


def named_state_backends(topology: TopologyDefinition, profile: Profile, resolve: Resolver) -> tuple[DriverRef, ...]:
    """Return the state backends that components name, by name, without the memory.

    The options are those of the section ``state`` of the profile, if it is about the same driver.

    Raises:
        PluginError: when one is not installed or does not work; names the component.
    """
    refs: list[DriverRef] = []
    for name, component_name in sorted(_users(topology, TOPOLOGY_STATE_BACKEND).items()):
        if name == _MEMORY:
            continue
        if profile.state is not None and profile.state.name == name:
            refs.append(profile.state)
            continue
        try:
            refs.append(resolve("state", name, {}))
        except PluginError as error:
            msg = f"component {component_name!r}: {TOPOLOGY_STATE_BACKEND}: {error}"
            raise PluginError(msg) from error
    return tuple(refs)


def _users(topology: TopologyDefinition, key: str) -> dict[str, str]:
    """Return each value of a key, and the first component that has it."""
    users: dict[str, str] = {}
    for component in topology.components:
        users.setdefault(str(setting(merged_config(topology.config, component.config), key)), component.name)
    return users
