"""The lifecycle events that observers can follow: pluggy hook specifications, all in the past tense.

An observer is an object with methods of these names, registered in the entry-point group ``heron.hooks``. It is an
instance, a module, or a class without constructor arguments. A method takes by name the facts that it needs, so a hook
can get more facts later without a change of older observers. Observers need not import pluggy.

Observers never change the course of a topology. In every process that announces events, each observer has a daemon
thread that loads it and then calls it for one event after the other. Exceptions are logged with the name of the
observer. An observer whose load or call takes longer than 5 s is abandoned: the log names it, and the process does not
call it again. A process that ends waits one or two seconds for its last events. Delivery is at least once: a process
that is restarted may announce an event again. Facts contain no secrets.
"""

from __future__ import annotations

__all__ = ["HOOK_FACTS", "HOOK_NAMES", "OLDEST_SPI_VERSION", "SPI_VERSION", "HookSpecs"]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1


class HookSpecs:
    """The events, grouped by the process that announces them: commands, the topology manager, executors."""

    # -- commands

    def heron_topology_submitted(self, topology: str, topology_id: str) -> None:
        """The state of the topology was written and its containers were scheduled. Called in the command."""

    def heron_topology_ended(self, topology: str, topology_id: str, state: str) -> None:
        """The topology is over; `state` is ``finished``, ``failed`` or ``killed``.

        Called in the command or the topology manager. The command that waits for the end or kills the topology
        announces the event when the resources are freed. If a submitted topology ends by itself, its topology manager
        announces the event before it stops the containers.
        """

    # -- the topology manager

    def heron_plan_changed(self, topology: str, version: int) -> None:
        """A new physical plan was written; `version` grows by 1 with each. Called in the topology manager."""

    def heron_topology_activated(self, topology: str) -> None:
        """The spouts were resumed after a pause. Called in the topology manager."""

    def heron_topology_deactivated(self, topology: str) -> None:
        """The spouts were paused. Called in the topology manager."""

    def heron_backpressure_started(self, topology: str, component: str, task_id: int, cause: str) -> None:
        """A task became the culprit of back pressure: its queue is so long that the spouts that feed it are throttled.

        `cause` is for people: ``the task is slow``, ``the task is not running``. Called in the topology manager.
        """

    def heron_backpressure_ended(self, topology: str, component: str, task_id: int, duration_s: float) -> None:
        """The back pressure of that task ended after `duration_s` seconds. Called in the topology manager."""

    # -- executors

    def heron_container_started(self, topology: str, container_id: int, attempt: int) -> None:
        """The executor of a container started its processes; `attempt` counts from 1. Called in the executor."""

    def heron_process_died(self, topology: str, container_id: int, process: str, reason: str) -> None:
        """A child process of an executor ended unexpectedly; it is restarted unless it ended too often.

        `process` is its name in the logs (``stmgr``, ``count-3``); `reason` is its last message or its signal. Called
        in the executor.
        """


HOOK_NAMES = tuple(name for name in vars(HookSpecs) if name.startswith("heron_"))

HOOK_FACTS = {name: frozenset(vars(HookSpecs)[name].__annotations__) - {"return"} for name in HOOK_NAMES}
"""The facts of each hook by name; every announcement has exactly these facts."""
