"""The groups and apps that a client wants: a copy of those of Marathon, which requests change."""

from __future__ import annotations

import copy
from typing import Any

from heron_testing_servers.marathon_parts.apps import Refusal, checked_app, is_in, is_upgrade, parent_of, path_id

__all__ = ["Rights", "Root"]

Json = dict[str, Any]

_FIRST_SERVICE_PORT = 10_000


class Rights:
    """What a user may do: actions on paths, below which they hold; None: everything."""

    def __init__(self, rights: list[list[str]] | None) -> None:
        self._rights = rights

    def has(self, action: str, path: str) -> bool:
        """Return whether the user may do an action to an app or a group."""
        return self._rights is None or any(each == action and is_in(path, base) for each, base in self._rights)

    def check(self, action: str, path: str) -> None:
        """Raise Refusal 403 unless the user has the right."""
        if not self.has(action, path):
            raise Refusal(403, "Not Authorized to perform this action!")


class Root:
    """All groups and apps by their ids. An app whose definition is new has no ``versionInfo``."""

    def __init__(self, state: Json, rights: Rights) -> None:
        self.groups: Json = copy.deepcopy(state["groups"])
        self.apps: Json = copy.deepcopy(state["apps"])
        self._rights = rights

    def add_app(self, document: Any) -> Json:  # noqa: ANN401 - of a client
        """Add an app that does not exist. Raises Refusal 409 when it does."""
        app = checked_app(document, "/")
        self._rights.check("create", app["id"])
        if app["id"] in self.apps:
            raise Refusal(409, f"An app with id [{app['id']}] already exists.")
        self._place(app)
        return app

    def merge_app(self, update: Any, versions: Json, *, partial: bool) -> None:  # noqa: ANN401 - of a client
        """Create an app or change it; with `partial` keep what the update leaves out. A lone version brings it back."""
        if not isinstance(update, dict) or not isinstance(update.get("id"), str):
            raise Refusal(400, "Invalid JSON", details=[{"path": "/id", "errors": ["error.expected.jsstring"]}])
        name = path_id(update["id"])
        old = self.apps.get(name, {})
        self._rights.check("update" if old else "create", name)
        if old and update.keys() == {"id", "version"}:
            if update["version"] not in versions[name]:
                raise Refusal(404, f"App '{name}' does not exist in version {update['version']}")
            update = versions[name][update["version"]]
        replaced = {"cmd", "args"} if {"cmd", "args"} & update.keys() else set()
        kept = {each: value for each, value in old.items() if each not in replaced} if partial else {}
        self._place(checked_app({**kept, **update, "id": name}, "/"))

    def change_group(self, name: str, update: Json) -> None:
        """Create a group or change it: apps and groups that it names replace those that it has."""
        self.make_groups(name)
        if "apps" in update:
            wanted = [checked_app(each, name, f"/apps({index})") for index, each in enumerate(update["apps"])]
            names = {each["id"] for each in wanted}
            for each in [each for each in self.apps if parent_of(each) == name and each not in names]:
                self._rights.check("delete", each)
                del self.apps[each]
            for app in wanted:
                self._rights.check("update" if app["id"] in self.apps else "create", app["id"])
                self._place(app)
        if "groups" in update:
            children = {path_id(each["id"], name): each for each in update["groups"]}
            for each in [each for each in self.groups if each != "/" and parent_of(each) == name]:
                if each not in children:
                    self.remove_group(each)
            for child, each in children.items():
                self.change_group(child, each)

    def remove_group(self, name: str) -> None:
        """Remove a group with all below it."""
        self._rights.check("delete", name)
        self.groups = {each: value for each, value in self.groups.items() if not is_in(each, name)}
        self.apps = {each: value for each, value in self.apps.items() if not is_in(each, name)}
        self.make_groups("/")

    def make_groups(self, name: str) -> None:
        """Make a group and those above it."""
        while name not in self.groups:
            self.groups[name] = {"id": name, "dependencies": [], "version": ""}
            name = parent_of(name)

    def _place(self, app: Json) -> None:
        """Put an app into its group, with a service port for each port 0."""
        old = self.apps.get(app["id"])
        used = {port["port"] for each in self.apps.values() for port in each["portDefinitions"]}
        app["portDefinitions"] = copy.deepcopy(app["portDefinitions"])
        for index, each in enumerate(app["portDefinitions"]):
            if each.setdefault("port", 0) == 0 and old and index < len(old["portDefinitions"]):
                each["port"] = old["portDefinitions"][index]["port"]
            elif each["port"] == 0:
                each["port"] = next(port for port in range(_FIRST_SERVICE_PORT, 1 << 16) if port not in used)
            used.add(each["port"])
        if app["id"] in self.groups:
            raise Refusal(409, f"Groups and Applications may not have the same identifier: {app['id']}")
        self.make_groups(parent_of(app["id"]))
        if old is None or is_upgrade(old, app) or old["instances"] != app["instances"]:
            self.apps[app["id"]] = app
