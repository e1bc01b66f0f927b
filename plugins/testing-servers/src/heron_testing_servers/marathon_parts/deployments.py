"""The deployments of a Marathon: their steps, the locks that they hold, and what undoes them."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from heron.clock import wall_s
from heron_testing_servers.marathon_parts.apps import Refusal, parent_of, plan
from heron_testing_servers.marathon_parts.root import Rights, Root

__all__ = ["Deployments", "timestamp"]

Json = dict[str, Any]

_LOCKED = (
    "App is locked by one or more deployments. Override with the option '?force=true'. "
    "View details at '/v2/deployments/<DEPLOYMENT_ID>'."
)


class Deployments:
    """Changes groups, apps, versions and deployments in `state`; `emit` tells of each change."""

    def __init__(self, state: Json, emit: Callable[..., None]) -> None:
        self._state = state
        self._emit = emit

    def begin(self, target: Root, *, force: bool, restarted: Iterable[str] = ()) -> Json:
        """Begin a deployment from the present groups and apps to others.

        Raises:
            Refusal: 409 while another deployment has an app of this one, without `force`.
        """
        state, version = self._state, self._new_version()
        steps = plan(state["apps"], target.apps, restarted)
        apps = {action["app"] for step in steps for action in step}
        locks = [each["id"] for each in state["deployments"].values() if apps & set(each["affectedApps"])]
        if locks and not force:
            raise Refusal(409, _LOCKED, deployments=[{"id": each} for each in locks])
        for each in locks:
            self.cancel(each)
        for action in (action for step in steps for action in step):
            self._set_version(target, action, version)
        changed = target.groups.keys() ^ state["groups"].keys()
        deployment = {
            "id": str(uuid.uuid4()),
            "version": version,
            "affectedApps": sorted(apps),
            "affectedPods": [],
            "steps": [{"actions": step} for step in steps],
            "step": 0,
            "before": {
                "apps": {each: state["apps"].get(each) for each in apps},
                "groups": {each: state["groups"].get(each) for each in changed},
            },
        }
        state.update(groups=target.groups, apps=target.apps)
        state["deployments"][deployment["id"]] = deployment
        self._emit("deployment_info", plan={"id": deployment["id"], "version": version, "steps": steps})
        return deployment

    def revert(self, name: str) -> Json:
        """Cancel a deployment, and begin one that undoes its changes."""
        undone, target = self._state["deployments"][name], Root(self._state, Rights(None))
        for kind, now in (("apps", target.apps), ("groups", target.groups)):
            for each, before in undone["before"][kind].items():
                now.pop(each, None)
                if before is not None:
                    now[each] = before
        self.cancel(name)
        return self.begin(target, force=True, restarted=undone["affectedApps"])

    def cancel(self, name: str) -> None:
        """Forget a deployment. Its apps stay as they are wanted now."""
        del self._state["deployments"][name]
        self._emit("deployment_failed", id=name)

    def holds(self, app: str) -> bool:
        """Return whether a deployment has not come to the step of an app yet."""
        return any(
            action["app"] == app and action["action"] in {"ScaleApplication", "RestartApplication"}
            for each in self._state["deployments"].values()
            for step in each["steps"][each["step"] + 1 :]
            for action in step["actions"]
        )

    def advance(self, is_done: Callable[[Json], bool]) -> bool:
        """End the steps whose actions are done, and the deployments without steps; return whether there were any."""
        changed = False
        for deployment in list(self._state["deployments"].values()):
            steps = deployment["steps"]
            while deployment["step"] < len(steps) and all(map(is_done, steps[deployment["step"]]["actions"])):
                plan_of = {"plan": {"id": deployment["id"]}, "currentStep": steps[deployment["step"]]}
                self._emit("deployment_step_success", **plan_of)
                deployment["step"] += 1
                changed = True
            if deployment["step"] == len(steps):
                del self._state["deployments"][deployment["id"]]
                self._emit("deployment_success", id=deployment["id"])
                changed = True
        return changed

    def _set_version(self, target: Root, action: Json, version: str) -> None:
        name, state = action["app"], self._state
        state["delays"].pop(name, None)
        if (app := target.apps.get(name)) is None:
            state["failures"].pop(name, None)
            state["versions"].pop(name, None)
            return
        former = app.get("versionInfo")  # an app as it was before a deployment that is undone
        if former is None and action["action"] == "ScaleApplication":
            former = state["apps"].get(name, {}).get("versionInfo")
        config = former["lastConfigChangeAt"] if former else version
        app.update(version=version, versionInfo={"lastScalingAt": version, "lastConfigChangeAt": config})
        state["versions"].setdefault(name, {})[version] = copy.deepcopy(app)
        while name != "/":
            name = parent_of(name)
            target.groups[name]["version"] = version

    def _new_version(self) -> str:
        newest = max((each["version"] for each in self._state["groups"].values()), default="")
        version = timestamp()
        while version <= newest:
            newest = version = timestamp(datetime.fromisoformat(newest).timestamp() + 0.001)
        return version


def timestamp(at_s: float | None = None) -> str:
    """Return a time of the day, or the present one, as Marathon writes it."""
    at = datetime.fromtimestamp(wall_s() if at_s is None else at_s, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"
