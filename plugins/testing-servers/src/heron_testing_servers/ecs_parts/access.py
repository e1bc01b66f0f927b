"""Who asks AWS for what, and whether a policy allows it: signatures of version 4, and policies of IAM."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import parse_qsl, quote

from heron_testing_servers.http_service import Request

__all__ = ["ACCOUNT", "AccessError", "AwsRequest", "allows", "arn", "check_access", "check_rights", "parsed"]

Json = dict[str, Any]

ACCOUNT = "123456789012"
"""The account, as moto has it."""

_ROOT = f"arn:aws:iam::{ACCOUNT}:"
_UNSIGNED = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key "
    "and signing method. Consult the service documentation for details."
)
_CREDENTIAL = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d+)/([^/]+)/([^/]+)/aws4_request")
_SIGNED = re.compile(r"SignedHeaders=([^,]+)")
_OF_OBJECTS = {"GET": "GetObject", "PUT": "PutObject", "DELETE": "DeleteObject"}
_SUFFIX = "-AbCdEf"  # of a secret's ARN, in place of the random one
_TAGS = {"ecs": "ecs:TagResource", "secretsmanager": "secretsmanager:TagResource", "ssm": "ssm:AddTagsToResource"}
"""The permission that a creation with tags needs besides."""
_ON_NOTHING = re.compile(
    r"ecs:(List(Services|Tasks|TaskDefinitions|TaskDefinitionFamilies|Clusters|ContainerInstances)"
    r"|DescribeTaskDefinition|DeregisterTaskDefinition|CreateCluster)|ec2:.*|ssm:DescribeParameters|secretsmanager:(ListSecrets"
    r"|BatchGetSecretValue)"
)


class AccessError(Exception):
    """A request that AWS denies: the type of the exception, and its message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class AwsRequest:
    """A request as AWS reads it."""

    service: str
    action: str
    region: str
    access_key: str
    parameters: Json

    @property
    def name(self) -> str:
        """The name of the permission, such as ``ecs:CreateService``."""
        return f"{self.service}:{self.action}"


def parsed(request: Request) -> AwsRequest:
    """Read the service, the action and the parameters; the access key is empty for an unsigned request.

    Raises:
        ValueError: for a body that is not JSON.
    """
    signed = _CREDENTIAL.match(request.headers.get("authorization", ""))
    access_key, _, region, service = signed.groups() if signed else ("", "", "", "")
    if target := request.headers.get("x-amz-target", ""):
        parameters = request.json() if request.body else {}
        return AwsRequest(service, target.rpartition(".")[2], region, access_key, parameters)
    if service == "s3":  # in the path, as clients of a server with an address write it
        bucket, _, key = request.path.lstrip("/").partition("/")
        action = _OF_OBJECTS.get(request.method, request.method) if key else "ListBucket"
        return AwsRequest(service, action, region, access_key, {"Bucket": bucket, "Key": key})
    form = dict(parse_qsl(request.body.decode()))
    return AwsRequest(service, form.get("Action", request.path), region, access_key, dict(form))


def check_access(
    request: Request, asked: AwsRequest, administrator: tuple[str, str], users: Mapping[str, Json]
) -> None:
    """Check the key, the signature and the rights of a request.

    Args:
        request: the request, and `asked`, how AWS reads it.
        asked: see `request`.
        administrator: an access key with its secret, which has all rights.
        users: ``name``, ``secret`` and ``policy`` of the users, by their access keys.

    Raises:
        AccessError: when one of them is wrong.
    """
    is_json, user = "x-amz-target" in request.headers, users.get(asked.access_key)
    if not asked.access_key:
        _deny("MissingAuthenticationTokenException", "Missing Authentication Token")
    if user is None and asked.access_key != administrator[0]:
        kind = "UnrecognizedClientException" if is_json else "InvalidClientTokenId"
        _deny(kind, "The security token included in the request is invalid.")
    if not _is_signed_with(request, user["secret"] if user else administrator[1]):
        _deny("InvalidSignatureException" if is_json else "SignatureDoesNotMatch", _UNSIGNED)
    check_rights(asked, users)


def check_rights(asked: AwsRequest, users: Mapping[str, Json]) -> None:
    """Check the rights of a request. Raises AccessError when one is missing."""
    user = users.get(asked.access_key)
    for action, resource, context in _needed_rights(asked) if user else ():
        if user and not allows(user["policy"], action, resource, context):
            who = f"User: {_ROOT}user/{user['name']} is not authorized to perform: {action} on resource: {resource}"
            why = f"because no identity-based policy allows the {action} action"
            _deny("AccessDenied" if asked.service in {"s3", "sts"} else "AccessDeniedException", f"{who} {why}")


def _deny(kind: str, message: str) -> NoReturn:
    raise AccessError(kind, message)


def _is_signed_with(request: Request, secret: str) -> bool:
    """Check the signature of a request."""
    authorization = request.headers["authorization"]
    credential, signed = _CREDENTIAL.match(authorization), _SIGNED.search(authorization)
    if credential is None or signed is None:
        return False
    _, date, region, service = credential.groups()
    names = signed[1].split(";")
    lines = [f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in names]
    payload = request.headers.get("x-amz-content-sha256") or hashlib.sha256(request.body).hexdigest()
    pairs = sorted(
        (quote(name, safe="~"), quote(each, safe="~")) for name, of in request.queries.items() for each in of
    )
    query = "&".join(f"{name}={value}" for name, value in pairs)
    path = quote(request.path, safe="/~")
    canonical = "\n".join([request.method, path, query, "".join(lines), signed[1], payload])
    scope = f"{date}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", request.headers.get("x-amz-date", ""), scope, digest])
    key = f"AWS4{secret}".encode()
    for each in (date, region, service, "aws4_request"):
        key = hmac.digest(key, each.encode(), "sha256")
    return authorization.endswith(f"Signature={hmac.digest(key, text.encode(), 'sha256').hex()}")


def arn(service: str, region: str, rest: str) -> str:
    """Return the name of a resource of the account."""
    return f"arn:aws:{service}:{region}:{ACCOUNT}:{rest}"


def _needed_rights(asked: AwsRequest) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield the permissions that a request needs: a name, the resource, and the values of condition keys."""
    parameters, found = asked.parameters, {"aws:RequestedRegion": asked.region}
    cluster = _named(asked, "cluster", parameters.get("cluster") or "default")
    found["ecs:cluster"] = cluster
    tags = parameters.get("tags") or parameters.get("Tags") or []
    given = ({name.lower(): value for name, value in each.items()} for each in tags)
    found |= {f"aws:RequestTag/{each['key']}": each["value"] for each in given}
    if asked.name == "sts:GetCallerIdentity":
        return
    for resource in _resources(asked, cluster):
        yield asked.name, resource, found
        if tags and asked.service in _TAGS and not asked.action.endswith(("TagResource", "TagsToResource")):
            yield _TAGS[asked.service], resource, {**found, "ecs:CreateAction": asked.action}
    if asked.name == "ecs:RegisterTaskDefinition":
        for kind in ("executionRoleArn", "taskRoleArn"):
            if role := parameters.get(kind):
                name = role if role.startswith("arn:") else f"{_ROOT}role/{role}"
                yield "iam:PassRole", name, {"iam:PassedToService": "ecs-tasks.amazonaws.com"}


def _resources(asked: AwsRequest, cluster: str) -> list[str]:
    parameters = asked.parameters
    if _ON_NOTHING.fullmatch(asked.name):
        return ["*"]
    if "resourceArn" in parameters:
        return [parameters["resourceArn"]]
    of_service = {"ecs": _of_ecs, "secretsmanager": _of_secrets, "ssm": _of_parameters, "logs": _of_logs, "s3": _of_s3}
    return of_service[asked.service](asked, cluster) if asked.service in of_service else ["*"]


def _of_secrets(asked: AwsRequest, _: str) -> list[str]:
    name = asked.parameters.get("SecretId") or asked.parameters.get("Name") or "*"
    return [name if name.startswith(("arn:", "*")) else arn("secretsmanager", asked.region, f"secret:{name}{_SUFFIX}")]


def _of_parameters(asked: AwsRequest, _: str) -> list[str]:
    given = asked.parameters
    names = given.get("Names") or [given.get("Name") or given.get("Path") or "*"]
    return [
        each if each.startswith("arn:") else arn("ssm", asked.region, f"parameter/{each.lstrip('/')}") for each in names
    ]


def _of_logs(asked: AwsRequest, _: str) -> list[str]:
    group, stream = asked.parameters.get("logGroupName") or "*", asked.parameters.get("logStreamName") or ""
    return [arn("logs", asked.region, f"log-group:{group}:log-stream:{stream}")]


def _of_s3(asked: AwsRequest, _: str) -> list[str]:
    return ["arn:aws:s3:::" + "/".join(filter(None, (asked.parameters["Bucket"], asked.parameters["Key"])))]


def _of_ecs(asked: AwsRequest, cluster: str) -> list[str]:
    given, short = asked.parameters, cluster.rpartition("/")[2]
    if asked.action == "DescribeClusters":
        return [_named(asked, "cluster", each) for each in given.get("clusters") or ["default"]]
    if asked.action in {"RegisterTaskDefinition", "RunTask"}:
        return [_named(asked, "task-definition", given.get("family") or given.get("taskDefinition") or "")]
    for kind in ("service", "task"):
        one = given.get(kind) or (given.get("serviceName") if kind == "service" else None)
        if names := given.get(f"{kind}s") or ([one] if one else []):
            return [each if each.startswith("arn:") else _named(asked, kind, f"{short}/{each}") for each in names]
    return [_named(asked, "cluster", each) for each in given.get("clusters", ())] or [cluster]


def _named(asked: AwsRequest, kind: str, name: str) -> str:
    return name if name.startswith("arn:") else arn("ecs", asked.region, f"{kind}/{name}")


def allows(policy: Json, action: str, resource: str, context: Mapping[str, str]) -> bool:
    """Return whether a policy allows an action; a statement with ``Deny`` beats all others."""
    statements = policy["Statement"] if isinstance(policy["Statement"], list) else [policy["Statement"]]
    effects = {each["Effect"] for each in statements if _applies(each, action, resource, context)}
    return effects == {"Allow"}


def _applies(statement: Json, action: str, resource: str, context: Mapping[str, str]) -> bool:
    actions = any(_matches(each.lower(), action.lower()) for each in _listed(statement.get("Action", ())))
    if "NotAction" in statement:
        actions = not any(_matches(each.lower(), action.lower()) for each in _listed(statement["NotAction"]))
    resources = any(_matches(each, resource) for each in _listed(statement.get("Resource", "*")))
    conditions = statement.get("Condition", {})
    return actions and resources and all(_holds(operator, wanted, context) for operator, wanted in conditions.items())


def _holds(operator: str, wanted: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    base = operator.removesuffix("IfExists").partition(":")[2] or operator.removesuffix("IfExists")
    for key, values in wanted.items():
        has = context.get(key)
        if has is None:
            if operator.endswith("IfExists") or base.startswith(("StringNot", "ArnNot")):
                continue
            return False
        like = base.endswith("Like") or base.startswith("Arn")
        found = any(_matches(each, has) if like else each == has for each in _listed(values))
        if found == ("Not" in base):
            return False
    return True


def _listed(value: Any) -> list[str]:  # noqa: ANN401 - a text or a list of them
    return [value] if isinstance(value, str) else list(value)


def _matches(pattern: str, text: str) -> bool:
    if text == "*":
        return pattern == "*"  # what has no resource needs all
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), text) is not None
