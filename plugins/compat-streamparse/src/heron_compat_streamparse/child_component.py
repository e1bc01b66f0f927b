"""Components in child processes: those that the distribution heron-runtime-multilang runs, if it is installed.

The child is a process of its own. It imports the real streamparse, which has to be installed for components in Python.
Its working directory is the folder ``src`` of the project, as in Storm.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Protocol, cast

from heron.api.component_spec import HeronComponentSpec
from heron.api.definition import ComponentDefinition
from heron.driver_kit.loading import load_object
from heron_compat_streamparse.specs.foreign import ForeignKind, ForeignRuntime
from heron_compat_streamparse.specs.spec import ComponentSpec

__all__ = ["can_run", "child_definition"]

_PACKAGE = "heron_runtime_multilang"
_BOLT, _SPOUT = f"{_PACKAGE}.shell_bolt:ShellBolt", f"{_PACKAGE}.shell_spout:ShellSpout"


class _ShellClass(Protocol):
    def spec(self, name: str | None, **arguments: object) -> HeronComponentSpec: ...


def can_run(runtime: ForeignRuntime) -> bool:
    """Whether this installation runs such a component."""
    return runtime.kind is ForeignKind.CHILD and find_spec(_PACKAGE) is not None


def child_definition(
    spec: ComponentSpec, runtime: ForeignRuntime, folder: str, tasks: int, config: Mapping[str, object]
) -> ComponentDefinition:
    """Return the component as data. `folder` is where the child starts, relative to that of the topology's file, or "".

    Raises:
        TopologyError: as `spec` of heron-runtime-multilang.
        ConfigError: when the configuration is wrong.
    """
    arguments: dict[str, object] = {"par": tasks, "config": config, "outputs": list(spec.outputs or ())}
    arguments["command"] = [each for each in runtime.command if each]
    arguments["work_folder"] = folder
    if not spec.is_spout:
        arguments["inputs"] = spec.inputs
    cls = cast("_ShellClass", load_object(_SPOUT if spec.is_spout else _BOLT, spec.place))
    return cls.spec(spec.name, **arguments).definition()
