"""Topology classes of streamparse: checked when the class is made, and turned into a definition when it is started."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, NoReturn, cast

from heron.api import topology as heron_topology
from heron.api.api_constants import TOPOLOGY_TICK_TUPLE_FREQ_SECS
from heron.api.config import check_config
from heron.api.definition import ComponentDefinition, TopologyDefinition
from heron.api.names import entry_of
from heron.author_text import short_text
from heron.errors import ConfigError, TopologyError
from heron_compat_streamparse.child_component import child_definition
from heron_compat_streamparse.components.batching_bolt import TicklessBatchingBolt
from heron_compat_streamparse.hosting.hosted_component import (
    COMPONENT_KEY,
    HOSTED,
    TOPOLOGY_KEY,
    HostedComponent,
    refuse_checkpoints,
)
from heron_compat_streamparse.hosting.storm_context import static_context
from heron_compat_streamparse.project.arguments import Arguments, parse_arguments
from heron_compat_streamparse.project.project import Environment, find_project
from heron_compat_streamparse.project.storm_options import StormOptions, resolve, split_component
from heron_compat_streamparse.specs.spec import ComponentSpec
from heron_compat_streamparse.topology_check import check_topology, specs_of

__all__ = ["Topology", "TopologyType"]

_log = logging.getLogger(__name__)


class TopologyType(heron_topology.TopologyType):
    """Checks a topology when its class is made."""

    specs: list[ComponentSpec]

    def __new__(mcs, classname: str, bases: tuple[type, ...], class_dict: dict[str, object]) -> TopologyType:
        """Return the class.

        Raises:
            TopologyError: when a component or connection is wrong, or cannot run here.
            ConfigError: when `config` is not a dict.
        """
        place = f"topology {classname!r}"
        if not isinstance(config := class_dict.get("config", {}), dict):
            msg = f"{place}: config {short_text(config, 60)} is not a dict; give {{'key': value}}"
            raise ConfigError(msg)
        made = cast("TopologyType", super().__new__(mcs, classname, bases, class_dict))
        made.specs = specs_of(class_dict, place)
        if any(isinstance(each, mcs) for each in bases):
            check_topology(made.specs, place)
        return made


class Topology(heron_topology.Topology, metaclass=TopologyType):
    """A topology as a class; its attributes are specs, and `config` is its configuration, with Storm's keys.

    The topology has the name of its file, as in streamparse.
    """

    config: ClassVar[Mapping[str, object]] = {}

    @classmethod
    def definition(cls) -> TopologyDefinition:
        """Return the topology as data, in the environment that the arguments of the program choose.

        Raises:
            TopologyError: when a component has no number of tasks for the environment.
            ConfigError: when config.json or an option is wrong, or the topology is effectively once.
            UsageError: when an argument of the program is wrong.
        """
        path, arguments = _program(cls)
        place = f"topology {cls.__name__!r}"
        environment = _environment(path, arguments)
        options = resolve(arguments.options, cls.config, environment, place)
        name = arguments.name or path.stem
        ignored = dict.fromkeys(options.ignored, place)
        components = []
        for spec in cls.specs:
            own = split_component(spec.config)
            ignored.update(dict.fromkeys(own.ignored, spec.place))
            if spec.foreign is None:
                components.append(_component(spec, own, environment, cls.specs))
            else:
                tasks = spec.tasks(environment.name)
                components.append(child_definition(spec, spec.foreign, _source_folder(path), tasks, own.heron))
        for key, where in ignored.items():
            _log.warning("%s: %s has no effect on Heron; components see it in storm_conf", where, key)
        storm = {**options.storm, "topology.name": name}
        config = check_config({**options.heron, TOPOLOGY_KEY: storm}, place)
        refuse_checkpoints(config, place)
        return TopologyDefinition(name, tuple(components), config)

    @classmethod
    def write(cls, stream: object = None) -> None:
        """Refuse: topologies are JSON here, not Thrift.

        Raises:
            TopologyError: always.
        """
        _refuse_thrift(cls, "write")

    @classmethod
    def read(cls, stream: object) -> None:
        """Refuse, as `write`.

        Raises:
            TopologyError: always.
        """
        _refuse_thrift(cls, "read")

    @classmethod
    def to_flux_dict(cls, name: str) -> None:
        """Refuse, as `write`.

        Raises:
            TopologyError: always.
        """
        _refuse_thrift(cls, "to_flux_dict")


def _refuse_thrift(cls: type, method: str) -> NoReturn:
    msg = f"topology {cls.__name__!r}: {method} makes files for Storm, which Heron does not read; use `heron plan FILE`"
    raise TopologyError(msg)


def _program(cls: type) -> tuple[Path, Arguments]:
    """Return the file that Heron has loaded and its arguments; in other processes the file of the class, and none."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if file is not None and sys.modules.get(Path(file).stem) is main:  # as `heron.kernel.user_code` loads it
        return Path(file), parse_arguments(sys.argv[1:])
    return Path(str(getattr(sys.modules[cls.__module__], "__file__", cls.__name__))), Arguments()


def _environment(path: Path, arguments: Arguments) -> Environment:
    project = find_project(path)
    if project is not None:
        return project.environment(arguments.environment)
    if arguments.environment is not None:
        msg = f"{path}: there is no config.json above it, so no environment {short_text(arguments.environment)}"
        raise ConfigError(msg)
    return Environment("", {})


def _source_folder(path: Path) -> str:
    folders = project.source_folders if (project := find_project(path)) else ()
    return os.path.relpath(folders[0], path.resolve().parent) if folders else ""


def _component(
    spec: ComponentSpec, own: StormOptions, environment: Environment, specs: Sequence[ComponentSpec]
) -> ComponentDefinition:
    config = dict(own.heron)
    if issubclass(spec.component_cls, TicklessBatchingBolt):
        config[TOPOLOGY_TICK_TUPLE_FREQ_SECS] = spec.component_cls.secs_between_batches
    hosted = HostedComponent(own.storm, static_context(spec, specs))
    config[COMPONENT_KEY] = hosted.as_config()
    return replace(
        spec.definition(),
        entry=f"{entry_of(spec.component_cls, spec.place)}.{HOSTED}",
        parallelism=spec.tasks(environment.name),
        config=check_config(config, spec.place, component=True),
    )
