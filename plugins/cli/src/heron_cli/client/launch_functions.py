"""The functions that submit and update topologies.

They are loaded when a method needs them: all other methods are ready 100 ms earlier without them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from heron.driver_kit.loading import load_object
from heron.ipc.documents.status import UpdateStatus
from heron.state_nodes.execution_state import ExecutionState
from heron_cli.topologies.environment import Environment, ProfileChoice
from heron_cli.topologies.progress import Progress
from heron_cli.topologies.running.remote_topology import RemoteTopology

if TYPE_CHECKING:
    from heron_cli.launch.loading.loaded import LoadedTopology
    from heron_cli.launch.update import TopologyUpdate

__all__ = ["submit_function", "update_functions"]

_SUBMIT = "heron_cli.launch.submission:submit_target"
_PLAN_UPDATE = "heron_cli.launch.update:plan_update"
_RUN_UPDATE = "heron_cli.launch.update:run_update"


class _Submit(Protocol):
    def __call__(
        self,
        environment: Environment,
        choice: ProfileChoice,
        target: str | LoadedTopology,
        arguments: Sequence[str],
        *,
        labels: tuple[str, str, bool],
        from_checkpoint: str,
        progress: Progress,
    ) -> tuple[ExecutionState, int]: ...


_PlanUpdate = Callable[[Environment, RemoteTopology, Mapping[str, int], int | None, Collection[str]], "TopologyUpdate"]
_RunUpdate = Callable[
    [Environment, ProfileChoice, RemoteTopology, "TopologyUpdate", Callable[[UpdateStatus], None]], "TopologyUpdate"
]


def submit_function() -> _Submit:
    """Return `heron_cli.launch.submission.submit_target`."""
    return cast("_Submit", load_object(_SUBMIT))


def update_functions() -> tuple[_PlanUpdate, _RunUpdate]:
    """Return `plan_update` and `run_update` of `heron_cli.launch.update`."""
    return cast("_PlanUpdate", load_object(_PLAN_UPDATE)), cast("_RunUpdate", load_object(_RUN_UPDATE))
