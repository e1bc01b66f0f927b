"""Requests for clusters, task definitions, instances of EC2 and tags."""

from __future__ import annotations

from typing import Any

from heron.clock import wall_s
from heron_testing_servers.ecs_parts.access import ACCOUNT, AwsRequest
from heron_testing_servers.ecs_parts.definitions import checked_definition
from heron_testing_servers.ecs_parts.requests import EcsRequests, page

__all__ = ["EcsCatalog"]

Json = dict[str, Any]


class EcsCatalog(EcsRequests):
    """What services and tasks refer to."""

    def list_clusters(self, asked: AwsRequest) -> Json:
        """Answer ``ListClusters``."""
        return page(asked, "clusterArns", [each["clusterArn"] for each in self._state["clusters"].values()])

    def describe_clusters(self, asked: AwsRequest) -> Json:
        """Answer ``DescribeClusters``."""
        found, failures = [], []
        for each in asked.parameters.get("clusters") or ["default"]:
            cluster = self._state["clusters"].get(each.rpartition("/")[2])
            if cluster is None or asked.region != self._controller.region:
                failures.append(self.missing("cluster", each))
                continue
            tasks = [one for one in self._controller.tasks.live() if one["clusterArn"] == cluster["clusterArn"]]
            running = sum(one["lastStatus"] == "RUNNING" for one in tasks)
            counts = {"runningTasksCount": running, "pendingTasksCount": len(tasks) - running}
            active = sum(one["status"] == "ACTIVE" for one in self.services_in(cluster))
            instances = len(self._state["instances"])
            shown = {**cluster, **counts, "activeServicesCount": active, "registeredContainerInstancesCount": instances}
            found.append(self.with_tags(shown, cluster["clusterArn"], asked))
        return {"clusters": found, "failures": failures}

    def register_task_definition(self, asked: AwsRequest) -> Json:
        """Answer ``RegisterTaskDefinition``."""
        definitions = self._state["definitions"]
        given = checked_definition({name: value for name, value in asked.parameters.items() if name != "tags"})
        revision = 1 + sum(each["family"] == given["family"] for each in definitions.values())
        name = self._controller.arn(f"task-definition/{given['family']}:{revision}")
        who = f"arn:aws:iam::{ACCOUNT}:user/{asked.access_key}"
        own = {"taskDefinitionArn": name, "revision": revision, "status": "ACTIVE", "registeredBy": who}
        definitions[name] = {**given, **own, "registeredAt": wall_s()}
        self.tag(name, asked)
        return {"taskDefinition": definitions[name], "tags": asked.parameters.get("tags", [])}

    def describe_task_definition(self, asked: AwsRequest) -> Json:
        """Answer ``DescribeTaskDefinition``."""
        found = self.definition(asked.parameters["taskDefinition"])
        tags = self._state["tags"].get(found["taskDefinitionArn"], [])
        return {"taskDefinition": found, **({"tags": tags} if "TAGS" in asked.parameters.get("include", ()) else {})}

    def deregister_task_definition(self, asked: AwsRequest) -> Json:
        """Answer ``DeregisterTaskDefinition``."""
        found = self.definition(asked.parameters["taskDefinition"])
        kept = self._state["definitions"][found["taskDefinitionArn"]]
        kept.update(status="INACTIVE", deregisteredAt=wall_s())
        return {"taskDefinition": kept}

    def list_task_definitions(self, asked: AwsRequest) -> Json:
        """Answer ``ListTaskDefinitions``."""
        family, status = asked.parameters.get("familyPrefix"), asked.parameters.get("status", "ACTIVE")
        own = [each for each in self._state["definitions"].values() if each["status"] == status]
        found = [each["taskDefinitionArn"] for each in own if family in {None, each["family"]}]
        return page(asked, "taskDefinitionArns", found[::-1] if asked.parameters.get("sort") == "DESC" else found)

    def list_task_definition_families(self, asked: AwsRequest) -> Json:
        """Answer ``ListTaskDefinitionFamilies``."""
        prefix, wanted = asked.parameters.get("familyPrefix", ""), asked.parameters.get("status", "ACTIVE")
        own = self._state["definitions"].values()
        found = {
            each["family"] for each in own if each["family"].startswith(prefix) and wanted in {"ALL", each["status"]}
        }
        return page(asked, "families", sorted(found))

    def list_container_instances(self, asked: AwsRequest) -> Json:
        """Answer ``ListContainerInstances``."""
        self.cluster(asked)
        alive = [name for name, each in self._state["instances"].items() if not each.get("lost")]
        return page(asked, "containerInstanceArns", alive)

    def describe_container_instances(self, asked: AwsRequest) -> Json:
        """Answer ``DescribeContainerInstances``."""
        self.cluster(asked)
        found, failures = [], []
        for each in asked.parameters["containerInstances"]:
            name = each if each.startswith("arn:") else self._controller.arn(f"container-instance/{each}")
            if (instance := self._state["instances"].get(name)) is None:
                failures.append(self.missing("container-instance", each))
                continue
            attributes = [{"name": key, "value": value} for key, value in instance.get("attributes", {}).items()]
            sizes = [
                {"name": kind.upper(), "type": "INTEGER", "integerValue": instance[kind]} for kind in ("cpu", "memory")
            ]
            found.append(
                {
                    "containerInstanceArn": name,
                    "ec2InstanceId": instance["name"],
                    "status": "INACTIVE" if instance.get("lost") else "ACTIVE",
                    "agentConnected": not instance.get("lost"),
                    "registeredResources": sizes,
                    "attributes": attributes,
                }
            )
        return {"containerInstances": found, "failures": failures}

    def tag_resource(self, asked: AwsRequest) -> Json:
        """Answer ``TagResource``."""
        self.tag(asked.parameters["resourceArn"], asked)
        return {}

    def untag_resource(self, asked: AwsRequest) -> Json:
        """Answer ``UntagResource``."""
        tags, gone = self._state["tags"], set(asked.parameters["tagKeys"])
        name = asked.parameters["resourceArn"]
        tags[name] = [each for each in tags.get(name, ()) if each["key"] not in gone]
        return {}

    def list_tags_for_resource(self, asked: AwsRequest) -> Json:
        """Answer ``ListTagsForResource``."""
        return {"tags": self._state["tags"].get(asked.parameters["resourceArn"], [])}
