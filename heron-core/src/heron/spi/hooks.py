"""The lifecycle events that any number of observers may follow: pluggy hook specifications, all in the past tense.

An observer is an object with methods named as here, registered under the entry-point group ``heron.hooks``: an
instance, a module, or a class that needs no arguments. It takes by name those of a hook's facts that it wants, so a
hook may get further facts and older observers go on. Observers need not import pluggy.

Observers never change what happens. Each has a daemon thread of its own in every process that announces something,
where it is loaded and then called, one event after the other; what it raises is logged under its name. An observer
whose load or call takes longer than 5 s is abandoned: named in the log and not called again by that process. What is
announced while a process ends is waited for a second or two at most. At least once: a process that is restarted may
announce again what it announced before it died. Nothing here is for secrets: facts go wherever observers send them.
"""

from __future__ import annotations

__all__ = ["HOOK_FACTS", "HOOK_NAMES", "OLDEST_SPI_VERSION", "SPI_VERSION", "HookSpecs"]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1


class HookSpecs:
    """The events by who announces them: commands, the topology manager, executors."""

    # -- commands

    def heron_topology_submitted(self, topology: str, topology_id: str) -> None:
        """The topology's state is written and its containers are scheduled. Called in the command."""

    def heron_topology_ended(self, topology: str, topology_id: str, state: str) -> None:
        """The topology is over and its resources are freed; `state` is ``finished``, ``failed`` or ``killed``.

        Called in the command that waited for it or killed it; a topology that nobody waits for ends without.
        """

    # -- the topology manager

    def heron_plan_changed(self, topology: str, version: int) -> None:
        """A new physical plan was written; `version` grows by 1 with each. Called in the topology manager."""

    def heron_topology_activated(self, topology: str) -> None:
        """Spouts are asked for tuples again, after a pause. Called in the topology manager."""

    def heron_topology_deactivated(self, topology: str) -> None:
        """Spouts are no longer asked for tuples. Called in the topology manager."""

    def heron_backpressure_started(self, topology: str, component: str, task_id: int, cause: str) -> None:
        """A task became the culprit of back pressure: so much waits for it that who feeds it is slowed down.

        `cause` is for people: ``the task is slow``, ``the task is not running``. Called in the topology manager.
        """

    def heron_backpressure_ended(self, topology: str, component: str, task_id: int, duration_s: float) -> None:
        """The back pressure because of that task was lifted, after so long. Called in the topology manager."""

    # -- executors

    def heron_container_started(self, topology: str, container_id: int, attempt: int) -> None:
        """The executor of a container has started its processes, for the `attempt`-th time. Called in the executor."""

    def heron_process_died(self, topology: str, container_id: int, process: str, reason: str) -> None:
        """A child of an executor ended although it should not have; it is started again unless it did so too often.

        `process` is its name in the logs (``stmgr``, ``count-3``), `reason` the last thing it said, or its signal.
        Called in the executor.
        """


HOOK_NAMES = tuple(name for name in vars(HookSpecs) if name.startswith("heron_"))

HOOK_FACTS = {name: frozenset(vars(HookSpecs)[name].__annotations__) - {"return"} for name in HOOK_NAMES}
"""The facts of each hook by name; whoever announces it gives exactly these."""
