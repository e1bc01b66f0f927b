"""The report of the loading child to the command: one JSON value through a pipe."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["LoadReport", "StateReport"]


@dataclass(frozen=True, slots=True)
class StateReport:
    """A component with state: its `state_version`, and whether it overrides `migrate` and `migrate_keyed`."""

    version: int
    migrates: bool
    migrates_keyed: bool


@dataclass(frozen=True, slots=True)
class LoadReport:
    """Either `error` with its `traceback`, or the other fields; `files` and `import_paths` are relative to `root`."""

    error: str = ""
    traceback: str = ""
    definition: str = ""
    module: str = ""
    script: bool = False
    root: str = ""
    files: tuple[str, ...] = ()
    import_paths: tuple[str, ...] = ()
    compat: tuple[str, ...] = ()
    states: dict[str, StateReport] = field(default_factory=dict)
