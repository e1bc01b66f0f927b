"""Asks Nomad whether a token has the rights of the README, without changing anything.

Nomad answers some requests without the right as if nothing were there, so this asks for what it refuses. A write or a
removal of a variable names a version that the variable cannot have: Nomad says 409 with the right and 403 without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import httpx

from heron.errors import SchedulerError
from heron_scheduler_kit.managed.rest_api import ApiError, Json
from heron_scheduler_nomad.nomad_api import NomadApi

__all__ = ["check_rights"]

_NO_VERSION = "1"  # versions are indexes of the log of the servers, and the first entries have no variables


@dataclass(frozen=True, slots=True)
class _Probe:
    """A request that Nomad answers with 403 when the right is missing."""

    right: str
    method: str
    path: str
    body: Json | None = None
    version: str = ""


def check_rights(api: NomadApi, job: Json, stored_job: str, launch_file: str) -> None:
    """Check the agent, the token, and its rights for a job and its two kinds of variables.

    Raises:
        SchedulerError: when there is no Nomad at the address, it does not know the token, or rights are missing; names
            all of them.
    """
    api.request("GET", "status/leader")  # needs no right: an answer in JSON is Nomad's
    _check_token(api)
    if missing := [each.right for each in _probes(job, stored_job, launch_file) if not _may(api, each)]:
        at = api.access
        if not at.token:
            msg = f"nomad at {at.address} needs a token, and none was sent; set {at.token_from}"
            raise SchedulerError(msg)
        msg = (
            f"nomad at {at.address}: the token of {at.token_from} may not {', '.join(missing)} in namespace "
            f"{at.namespace!r}; grant the ACL policy in the README of heron-scheduler-nomad, or correct the namespace"
        )
        raise SchedulerError(msg)


def _check_token(api: NomadApi) -> None:
    at = api.access
    if not at.token:
        return
    try:
        api.request("GET", "acl/token/self")
    except ApiError as error:
        if error.status == httpx.codes.BAD_REQUEST:
            return  # without access control there are no tokens
        said = f"nomad at {at.address} does not know the token of {at.token_from}: {error}"
        msg = f"{said}; correct {at.token_from}, see `nomad acl token self`"
        raise SchedulerError(msg) from error


def _probes(job: Json, stored_job: str, launch_file: str) -> Iterator[_Probe]:
    yield _Probe("submit-job", "PUT", f"job/{job['ID']}/plan", {"Job": job, "Diff": False})
    yield _Probe("read-job", "GET", f"job/{job['ID']}")
    yield _Probe("read variables nomad/jobs/heron-*", "GET", f"var/{stored_job}")
    for path, pattern in ((stored_job, "nomad/jobs/heron-*"), (launch_file, "nomad/jobs/heron-*/*")):
        body: Json = {"Path": path, "Items": {"check": ""}}
        yield _Probe(f"write variables {pattern}", "PUT", f"var/{path}", body, _NO_VERSION)
        yield _Probe(f"destroy variables {pattern}", "DELETE", f"var/{path}", None, _NO_VERSION)


def _may(api: NomadApi, probe: _Probe) -> bool:
    query = {"cas": probe.version} if probe.version else {}
    try:
        api.request(probe.method, probe.path, probe.body, query)
    except ApiError as error:
        if error.status not in {httpx.codes.FORBIDDEN, httpx.codes.NOT_FOUND, httpx.codes.CONFLICT}:
            raise
        return error.status != httpx.codes.FORBIDDEN
    return True
