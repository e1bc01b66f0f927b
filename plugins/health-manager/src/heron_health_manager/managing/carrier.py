"""Carries an action out, on the same path as the commands: `heron update` and `heron restart`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from heron.errors import HeronError
from heron.spi.health_values import Action, ActionKind
from heron_cli.launch.update import TopologyUpdate, lacks_containers, plan_update, run_update
from heron_cli.topologies.environment import Environment, ProfileChoice
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_cli.topologies.running.restart import restart_containers
from heron_cli.topologies.running.runtime_config import change_config
from heron_health_manager.managing.recovery import INTERRUPTED

__all__ = ["Carrier", "PlannedAction"]

_UPDATE_S = 300.0  # as `heron update`
_RESTART_S = 60.0  # as `heron restart`
_CONFIGURE_S = 30.0  # as `heron update --runtime-config`

Connect = Callable[[float], RemoteTopology]
"""Connects to the topology with that time limit, with the key that may change it."""


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """An action, and the update that carries it out; None for a restart.

    `settings` are the present values of those that it changes, by component and key; None where it is the default.
    """

    action: Action
    update: TopologyUpdate | None = None
    settings: Mapping[tuple[str, str], object] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """The id of the packing plan that the update changes; "" if the action does not change it."""
        return self.update.before.id if self.update and self._replans else ""

    @property
    def target(self) -> str:
        """The id of the packing plan that the update makes; "" if the action does not change it."""
        return self.update.after.id if self.update and self._replans else ""

    @property
    def _replans(self) -> bool:
        return self.action.kind is ActionKind.UPDATE

    def changed(self) -> str:
        """Why the plan is not the one that the action was decided for; "" if it is."""
        for component, values in self.action.settings_before.items():
            for key, value in values.items():
                if self.settings.get((component, key)) not in (value, None):
                    return f"{key} of {component} was changed meanwhile: it is {self.settings[component, key]}"
        if self.update is None:
            return ""
        containers = len(self.update.before.containers)
        if self.action.containers_before not in (0, containers):
            return (
                f"the plan was changed meanwhile: it has {containers} containers, not {self.action.containers_before}"
            )
        now = dict.fromkeys(self.action.before, 0)
        for _, instance in self.update.before.instances():
            if instance.component in now:
                now[instance.component] += 1
        for name, tasks in self.action.before.items():
            if now[name] != tasks:
                return f"the plan was changed meanwhile: {name} has {now[name]} tasks, not {tasks}"
        return ""


class Carrier:
    """Plans and carries out the actions against one topology."""

    def __init__(self, environment: Environment, choice: ProfileChoice, connect: Connect) -> None:
        self._environment = environment
        self._choice = choice
        self._connect = connect

    def plan(self, action: Action) -> PlannedAction:
        """Plan an action with the plan that the topology has now; changes nothing.

        Raises:
            AccessError: when the keys do not permit changes.
            UsageError: when it cannot be carried out, such as tasks that fit into no container.
            UnreachableError, StateError: when the topology or the state manager does not answer.
        """
        with self._connect(_UPDATE_S) as topology:
            topology.status(control=True)
            if action.kind is ActionKind.UPDATE:
                return PlannedAction(action, self._repacked(topology, action))
            if action.kind is ActionKind.CONFIGURE:
                changes = change_config(self._environment.statemgr, topology, action.settings, dry_run=True)
                present = {(each.component, each.key): each.before for each in changes}
                return PlannedAction(action, settings=present)
            if action.kind is ActionKind.REBALANCE:
                update = plan_update(self._environment, topology, {}, rebalance=(action.component,))
                return PlannedAction(action, update)
        return PlannedAction(action)

    def _repacked(self, topology: RemoteTopology, action: Action) -> TopologyUpdate:
        return plan_update(self._environment, topology, action.parallelism, action.containers or None)

    def carry_out(self, planned: PlannedAction) -> None:
        """Carry an action out and return when it is complete.

        Raises:
            UnreachableError, StateError: when it is not known whether it was carried out; it may still continue.
            HeronError: when it was not, or was withdrawn.
        """
        action = planned.action
        if planned.update is not None:
            with self._connect(_UPDATE_S) as topology:
                run_update(self._environment, self._choice, topology, planned.update, lambda _: None)
        elif action.kind is ActionKind.CONFIGURE:
            with self._connect(_CONFIGURE_S) as topology:
                change_config(self._environment.statemgr, topology, action.settings, dry_run=False)
        elif action.kind is ActionKind.RESTART:
            with self._connect(_RESTART_S) as topology:
                scheduler = self._environment.scheduler
                elsewhere = action.elsewhere and "avoid" in scheduler.capabilities
                for _ in restart_containers(
                    scheduler, self._choice.name, topology, action.container_id, elsewhere=elsewhere
                ):
                    pass
        else:
            msg = f"an action of kind {action.kind.value!r} cannot be carried out: {action.text}"
            raise HeronError(msg)

    def give_up(self, containers: Collection[int]) -> None:
        """Have the update under way withdrawn if the scheduler was never asked for one of these containers.

        Raises:
            HeronError: when the update cannot be withdrawn any more, or somebody does not answer.
        """
        with self._connect(_CONFIGURE_S) as topology:
            if lacks_containers(self._environment.scheduler, topology, containers):
                topology.withdraw_update(INTERRUPTED)
