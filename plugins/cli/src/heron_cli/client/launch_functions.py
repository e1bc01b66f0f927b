"""The type of the function that submits topologies, which `client` loads by name, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from heron.state_nodes.execution_state import ExecutionState

if TYPE_CHECKING:
    from heron_cli.launch.loading.loaded import LoadedTopology
    from heron_cli.topologies.environment import Environment, ProfileChoice
    from heron_cli.topologies.progress import Progress

__all__ = ["Submit", "SubmitResult"]


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
