"""Whether new code can read the state that the running topology has saved. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from heron.checkpoints.manifest import CheckpointManifest
from heron.errors import UsageError
from heron_cli.launch.loading.load_report import StateReport

__all__ = ["check_state", "other_versions"]


def check_state(manifest: CheckpointManifest, states: Mapping[str, StateReport], changed: Collection[str]) -> None:
    """Check that each changed component can read its part of a checkpoint.

    Raises:
        UsageError: when one cannot: its `state_version` is another one, and it does not override the method that
            converts the state; names every component.
    """
    problems = [problem for name in changed for problem in _problems(manifest, name, states.get(name))]
    if problems:
        msg = f"the new code cannot read checkpoint {manifest.id}: {'; '.join(problems)}"
        raise UsageError(msg)


def other_versions(
    manifest: CheckpointManifest, states: Mapping[str, StateReport], changed: Collection[str]
) -> tuple[str, ...]:
    """Return the changed components whose saved state has another version."""
    return tuple(name for name in changed if _differs(manifest, name, states.get(name)))


def _differs(manifest: CheckpointManifest, component: str, state: StateReport | None) -> bool:
    version = state.version if state else 0
    return any(each.version != version for each in manifest.tasks_of(component) if each.operator or each.groups)


def _problems(manifest: CheckpointManifest, component: str, state: StateReport | None) -> list[str]:
    found: dict[str, None] = {}
    for each in manifest.tasks_of(component):
        if state is None and (each.operator or (each.groups and each.version)):
            found[f"component {component!r} is no StatefulComponent, and has saved state"] = None
        elif state is not None and each.version != state.version:
            versions = f"its state has state_version {each.version}, and the new code has {state.version}"
            if each.operator and not state.migrates:
                found[f"component {component!r}: {versions}; override migrate"] = None
            if each.groups and not state.migrates_keyed:
                found[f"component {component!r}: {versions}; override migrate_keyed"] = None
    return list(found)
