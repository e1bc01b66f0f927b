"""The types of the functions that submit and update topologies, which `client` loads by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from heron.state_nodes.execution_state import ExecutionState

if TYPE_CHECKING:
    from heron.ipc.documents.status import UpdateStatus
    from heron_cli.launch.code.code_update import CodeUpdate
    from heron_cli.launch.loading.loaded import LoadedTopology
    from heron_cli.launch.update import TopologyUpdate
    from heron_cli.topologies.environment import Environment, ProfileChoice
    from heron_cli.topologies.progress import Progress
    from heron_cli.topologies.running.code_request import CodeRequest
    from heron_cli.topologies.running.remote_topology import RemoteTopology

__all__ = ["PlanUpdate", "RunUpdate", "Submit", "SubmitResult", "UpdateCode"]


@dataclass(frozen=True, slots=True)
class SubmitResult:
    """A topology that was submitted.

    `containers` counts container 0 too. `notes` are messages for people about earlier runs that were removed.
    """

    run: ExecutionState
    containers: int
    notes: tuple[str, ...] = ()


class Submit(Protocol):
    """The type of `heron_cli.launch.submission.submit_target`."""

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
    ) -> tuple[ExecutionState, int]:
        """Start a topology; return its run and the number of its containers."""


PlanUpdate = Callable[
    ["Environment", "RemoteTopology", Mapping[str, int], int | None, Collection[str]], "TopologyUpdate"
]
"""The type of `heron_cli.launch.update.plan_update`."""
RunUpdate = Callable[
    ["Environment", "ProfileChoice", "RemoteTopology", "TopologyUpdate", Callable[["UpdateStatus"], None]],
    "TopologyUpdate",
]
"""The type of `heron_cli.launch.update.run_update`."""
UpdateCode = Callable[["Environment", "ProfileChoice", "RemoteTopology", "CodeRequest"], "CodeUpdate"]
"""The type of `heron_cli.launch.code.code_update.update_code`."""
