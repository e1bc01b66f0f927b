"""Jobs as objects of AWS; `heron_scheduler_ecs.task_spec` has their shape."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from heron.errors import SchedulerError
from heron.spi.scheduler import JobLink
from heron_s3_kit.bucket import Bucket, Condition
from heron_scheduler_ecs.ecs_api import ERRORS, EcsApi
from heron_scheduler_ecs.options import EcsOptions
from heron_scheduler_ecs.task_spec import TopologyObjects, covers, new_place
from heron_scheduler_ecs.task_view import by_service, is_left, newest, observation
from heron_scheduler_kit.managed.cluster import (
    Cluster,
    JobChange,
    JobChangedError,
    JobExistsError,
    Observation,
    StoredJob,
)
from heron_scheduler_kit.managed.managed_job import ContainerRequest, ManagedJob, decode_job, encode_job
from heron_scheduler_kit.managed.rest_api import Json, fields, items

__all__ = ["EcsCluster", "active_revisions"]

_ANSWER_S = 8.0  # half of it to connect to S3, half for an answer
_EXISTS = {"ResourceExistsException"}
_GONE = {"ServiceNotFoundException", "ServiceNotActiveException"}
_INACTIVE = {"ClientException", "InvalidParameterException"}  # of a revision that is not there
_ABSENT = {"ResourceNotFoundException"}
_CONSOLES = {"aws-cn": "console.amazonaws.cn", "aws-us-gov": "console.amazonaws-us-gov.com"}


class EcsCluster(Cluster):
    """One cluster in one region, and the bucket with its stored jobs."""

    def __init__(self, options: EcsOptions) -> None:
        """The first call connects."""
        self._api = EcsApi(options)
        self._options = options

    def check(self, timeout_s: float) -> str:
        """Do what a submission does, with a service that starts no task, and remove it.

        AWS does not say in which order it checks rights and arguments, so wrong arguments would prove nothing. The
        removals come first too: without a right to remove, nothing is created.
        """
        del timeout_s  # each request has its own limit, and the first one without an answer ends the check
        request = ContainerRequest(0, new_place(0), 0.25, 512)
        job = ManagedJob(f"check-{secrets.token_hex(4)}", "", containers=(request,))
        self._api.check()
        self._withdraw(job.topology, [request.place], [f"{self._of(job.topology).family}:1"])
        self.end(job.topology)
        self.release(job.topology)
        try:
            self.reserve(job)
            _add_secret(self._api, self._of(job.topology).secret_spec(job, request, b"check"))
            self._start(job, request, b"check", {}, tasks=0)  # finds the secret
            self.observe(job)
            self._api.call("ecs", "describe_tasks", {**self._api.named, "tasks": ["0" * 32]})
            self._spare_definitions(job.topology, [])
            _last_lines(self._api, self._options.log_group, "check", 1)
        finally:
            self.end(job.topology)
            self.release(job.topology)
        return f"{self._api.where}, jobs in {self._bucket.where}"

    def place(self, job: ManagedJob, container_id: int) -> str:
        del job
        return new_place(container_id)

    def find(self, topology: str) -> StoredJob | None:
        key = _key(self._options, topology)
        found = self._bucket.get(key)
        if found is None:
            return None
        job = decode_job(found[0].decode(errors="replace"), f"object {key} in {self._bucket.where}", topology)
        return StoredJob(job, found[1], f"services {self._of(topology).service('*')} of {self._api.where}")

    def reserve(self, job: ManagedJob) -> None:
        self._api.check()  # before anything is stored
        if not self._write(job, Condition()):
            raise JobExistsError(job.topology)

    def replace(self, job: ManagedJob, version: str) -> None:
        if not self._write(job, Condition(version)):
            raise JobChangedError(job.topology)

    def apply(self, change: JobChange) -> None:
        job, objects = change.after, self._of(change.after.topology)
        names = {each: objects.service(each) for each in job.places | change.removed}
        known = self._api.services(names.values())
        active = {place for place, name in names.items() if known.get(name, {}).get("status") == "ACTIVE"}
        revisions = {place: str(known[names[place]].get("taskDefinition")) for place in active}
        new = [each for each in job.containers if each.place in change.files.keys() - active]
        spare = self._spare_definitions(job.topology, revisions.values()) if new else {}
        for each in new:
            self._start(job, each, change.files[each.place], spare)
        stored = self.find(job.topology)
        if stored is None or stored.job.topology_id != job.topology_id:
            self._withdraw(job.topology, names)
            msg = f"topology {job.topology!r} was killed meanwhile"
            raise SchedulerError(msg)
        self._withdraw(job.topology, change.removed, [revisions[each] for each in change.removed & active])

    def observe(self, job: ManagedJob) -> Mapping[str, Observation]:
        objects = self._of(job.topology)
        tasks = by_service(self._api.tasks(objects.family))
        names = {each: objects.service(each.place) for each in job.containers}
        idle = [name for name in names.values() if newest(tasks.get(name, ())).get("lastStatus") != "RUNNING"]
        services = self._api.services(idle)
        found = {
            request.place: observation(request, tasks.get(name, []), services.get(name, {}))
            for request, name in names.items()
            if name in tasks or name in services
        }
        running = {each.place: newest(tasks.get(name, ())) for each, name in names.items()}
        hosts = self._api.instance_ids(running.values()) if self._options.launch_type == "EC2" else {}
        of_place = {place: hosts.get(str(each.get("containerInstanceArn")), "") for place, each in running.items()}
        return {place: replace(each, host=of_place[place]) for place, each in found.items()}

    def move(self, job: ManagedJob, place: str) -> None:
        self._api.call("ecs", "update_service", self._of(job.topology).moved_service(job, place))

    def end(self, topology: str) -> None:
        stored = self.find(topology)
        listed = self._api.listed("ecs", "list_services", "serviceArns", self._api.named)
        found = filter(None, map(self._of(topology).services.fullmatch, listed))
        self._withdraw(topology, {each[1] for each in found} | (stored.job.places if stored else set()))

    def remains(self, topology: str) -> Sequence[str]:
        left = filter(is_left, self._api.tasks(self._of(topology).family))
        return [f"task {each['taskArn']} of {each.get('group')} is {each.get('lastStatus')}" for each in left]

    def release(self, topology: str) -> None:
        self._withdraw(topology, (), active_revisions(self._api, self._of(topology)))
        self._bucket.delete(_key(self._options, topology))

    def links(self, stored: StoredJob) -> tuple[JobLink, ...]:
        objects, region, cluster = self._of(stored.job.topology), self._api.region, self._options.cluster
        console = _CONSOLES.get(self._api.partition, "console.aws.amazon.com")
        page = f"https://{region}.{console}/ecs/v2/clusters/{cluster}/services"
        return (
            JobLink("tasks", f"aws ecs list-tasks --region {region} --cluster {cluster} --family {objects.family}"),
            *(
                JobLink(f"container {each.container_id}", f"{page}/{objects.service(each.place)}?region={region}")
                for each in stored.job.containers
            ),
        )

    def output(self, job: ManagedJob, container_id: int, lines: int) -> Sequence[str]:
        objects, place = self._of(job.topology), job.request(container_id).place
        last = newest(by_service(self._api.tasks(objects.family)).get(objects.service(place), ()))
        task = str(last.get("taskArn", "")).rpartition("/")[2]
        stream = objects.log_stream(place, task)
        return _last_lines(self._api, self._options.log_group, stream, lines) if task else []

    @cached_property
    def _bucket(self) -> Bucket:
        return Bucket(self._options.aws, ERRORS, _ANSWER_S)

    def _of(self, topology: str) -> TopologyObjects:
        return TopologyObjects(topology, self._options, self.avoided)

    def _write(self, job: ManagedJob, condition: Condition) -> bool:
        for each in job.containers:
            self._of(job.topology).size(each)  # raises when Fargate has none
        data = encode_job(job).encode()
        digest = hashlib.md5(data, usedforsecurity=False).digest()  # S3 compares it
        return self._bucket.put(_key(self._options, job.topology), data, digest, condition)

    def _start(
        self, job: ManagedJob, request: ContainerRequest, launch: bytes, spare: Mapping[str, Json], tasks: int = 1
    ) -> None:
        """Create what a container needs, unless an earlier call has."""
        objects = self._of(job.topology)
        secret = _add_secret(self._api, objects.secret_spec(job, request, launch))
        wanted = objects.task_definition(job, request, secret, self._api.region)
        arn = next((arn for arn, found in spare.items() if covers(found, wanted)), "")
        if not arn:
            answer = self._api.call("ecs", "register_task_definition", wanted)
            arn = str(fields(answer["taskDefinition"])["taskDefinitionArn"])
        self._api.call("ecs", "create_service", {**objects.service_spec(job, request, arn), "desiredCount": tasks})

    def _spare_definitions(self, topology: str, used: Iterable[str]) -> Mapping[str, Json]:
        """Return the active revisions that no service uses: a call whose answer was lost has made them."""
        spare = sorted({*active_revisions(self._api, self._of(topology))}.difference(used))
        answers = {each: self._api.call("ecs", "describe_task_definition", {"taskDefinition": each}) for each in spare}
        return {each: fields(answer["taskDefinition"]) for each, answer in answers.items()}

    def _withdraw(self, topology: str, places: Iterable[str], definitions: Iterable[str] = ()) -> None:
        """Remove secrets and services, and revisions. Secrets go first: a service without one is still listed."""
        objects = self._of(topology)
        for place in sorted(places):
            secret: Json = {"SecretId": objects.secret(place), "ForceDeleteWithoutRecovery": True}
            self._api.call("secretsmanager", "delete_secret", secret, _ABSENT)
            service: Json = {**self._api.named, "service": objects.service(place), "force": True}
            self._api.call("ecs", "delete_service", service, _GONE)
        for each in definitions:
            self._api.call("ecs", "deregister_task_definition", {"taskDefinition": each}, _INACTIVE)


def _key(options: EcsOptions, topology: str) -> str:
    """Return the key of a stored job in the bucket."""
    return f"{options.aws.prefix}/{topology}.json".removeprefix("/")


def _add_secret(api: EcsApi, secret: Json) -> str:
    """Create a secret, unless it exists, and return its ARN."""
    made = api.call("secretsmanager", "create_secret", secret, _EXISTS)
    return str((made or api.call("secretsmanager", "describe_secret", {"SecretId": secret["Name"]}))["ARN"])


def active_revisions(api: EcsApi, objects: TopologyObjects) -> list[str]:
    """Return the active revisions of a topology."""
    asked: Json = {"familyPrefix": objects.family, "status": "ACTIVE"}
    return api.listed("ecs", "list_task_definitions", "taskDefinitionArns", asked)


def _last_lines(api: EcsApi, group: str, stream: str, lines: int) -> list[str]:
    """Return the last lines of a log stream; none when nothing has been printed yet."""
    asked: Json = {"logGroupName": group, "logStreamName": stream, "limit": lines}
    found = api.call("logs", "get_log_events", asked, _ABSENT)  # without a beginning these are the last ones
    return [str(each.get("message", "")) for each in items(found.get("events"))]
