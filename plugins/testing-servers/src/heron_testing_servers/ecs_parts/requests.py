"""What requests to ECS have in common: the cluster that they name, tags, pages and what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from heron_testing_servers.ecs_parts.access import AwsRequest
from heron_testing_servers.ecs_parts.controller import EcsController
from heron_testing_servers.ecs_parts.definitions import refuse

__all__ = ["EcsRequests", "page"]

Json = dict[str, Any]

_PAGE = 100


class EcsRequests:
    """A method for each operation, with its name; the lock of the state is held."""

    def __init__(self, controller: EcsController) -> None:
        self._controller = controller
        self._state = controller.state.document

    def cluster(self, asked: AwsRequest) -> Json:
        """Return the cluster that a request names. Raises EcsError when there is none."""
        name = (asked.parameters.get("cluster") or "default").rpartition("/")[2]
        found = self._state["clusters"].get(name)
        if found is None or asked.region != self._controller.region or found["status"] != "ACTIVE":
            refuse("ClusterNotFoundException", "Cluster not found.")
        return dict(found)

    def definition(self, name: str) -> Json:
        """Return a task definition by its name. Raises EcsError when there is none."""
        state, short = self._state["definitions"], name.rpartition("/")[2]
        family, _, revision = short.partition(":")
        own = [each for each in state.values() if each["family"] == family]
        found = [
            each for each in own if (str(each["revision"]) == revision if revision else each["status"] == "ACTIVE")
        ]
        if not found:
            refuse("ClientException", "Unable to describe task definition.")
        return dict(found[-1])

    def services_in(self, cluster: Json) -> list[Json]:
        """Return the services of a cluster."""
        return [each for each in self._state["services"].values() if each["clusterArn"] == cluster["clusterArn"]]

    def tag(self, name: str, asked: AwsRequest) -> None:
        """Keep the tags of a request for a resource."""
        tags = self._state["tags"]
        given = {each["key"]: each for each in (*tags.get(name, ()), *asked.parameters.get("tags", ()))}
        if len(given) > 50:
            refuse("InvalidParameterException", "A resource can have at most 50 tags.")
        tags[name] = list(given.values())
        self._controller.state.save()

    def with_tags(self, shown: Json, name: str, asked: AwsRequest) -> Json:
        """Add the tags of a resource, if a request wants them."""
        return (
            {**shown, "tags": self._state["tags"].get(name, [])}
            if "TAGS" in asked.parameters.get("include", ())
            else shown
        )

    def missing(self, kind: str, name: str) -> Json:
        """Return a failure for a resource that is not there."""
        return {"arn": name if name.startswith("arn:") else self._controller.arn(f"{kind}/{name}"), "reason": "MISSING"}


def page(asked: AwsRequest, name: str, items: Iterable[str], default: int = _PAGE) -> Json:
    """Return a page of a list, with the token of the next one."""
    most = asked.parameters.get("maxResults", default)
    if not 1 <= most <= _PAGE:
        refuse("InvalidParameterException", f"maxResults must be between 1 and {_PAGE}.")
    ordered = list(items)
    first = int(asked.parameters.get("nextToken") or 0)
    left = {"nextToken": str(first + most)} if first + most < len(ordered) else {}
    return {name: ordered[first : first + most], **left}
