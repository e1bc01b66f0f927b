"""Requests to Marathon: JSON in, JSON out, and failures in Marathon's own words."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from heron.errors import SchedulerError
from heron_scheduler_kit.managed.rest_api import Json, RestApi, fields, items, refused, unanswered
from heron_scheduler_marathon.options import MarathonOptions

__all__ = ["LOCKED", "MarathonAccess", "MarathonApi", "find_access"]

LOCKED = 409
"""The status of a change that must wait for a deployment, or of an app that exists."""

_TIME_LIMITS = httpx.Timeout(4.0, connect=1.5)  # a machine that is off leaves time for the next one
_MESOS_S = 2.0


@dataclass(frozen=True, slots=True)
class MarathonAccess:
    """The servers, and how to sign in. `signed_by` is the key that a person corrects when Marathon refuses."""

    addresses: tuple[str, ...]
    tls: ssl.SSLContext
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    login: tuple[str, str] | None = field(default=None, repr=False)
    signed_by: str = ""


def find_access(options: MarathonOptions) -> MarathonAccess:
    """Return the access of a profile. Raises SchedulerError when the file with certificates cannot be used."""
    try:
        tls = ssl.create_default_context(cafile=options.ca_file or None)
    except OSError as error:  # SSLError is one
        msg = f"scheduler.ca_file: {options.ca_file} cannot be used: {error}; name a file with certificates (PEM)"
        raise SchedulerError(msg) from error
    addresses = tuple(each.rstrip("/") for each in options.addresses)
    if options.token:
        headers = {"Authorization": f"token={options.token}"}
        return MarathonAccess(addresses, tls, headers, signed_by="scheduler.token")
    if options.login:
        login = options.login, options.password
        return MarathonAccess(addresses, tls, login=login, signed_by="scheduler.login and scheduler.password")
    return MarathonAccess(addresses, tls)


class MarathonApi(RestApi[MarathonAccess]):
    """One Marathon and one user. Paths begin after ``/v2/``."""

    def list(self, path: str, name: str = "") -> list[Json]:
        """GET a list of objects, which may be in the field `name` of the answer."""
        found = self.request("GET", path)
        return items(fields(found).get(name) if name else found)

    def remove(self, path: str) -> None:
        """DELETE what may be gone already."""
        try:
            self.request("DELETE", path)
        except SchedulerError as error:
            if getattr(error, "status", 0) != httpx.codes.NOT_FOUND:
                raise

    def document(self, url: str) -> object:
        """GET a document of Mesos, without the credentials of Marathon. Raises SchedulerError when there is none."""
        server = httpx.URL(url).netloc.decode()
        try:
            with httpx.Client(verify=self.access.tls, timeout=_MESOS_S, follow_redirects=True) as client:
                found: object = client.get(url).raise_for_status().json()
                return found
        except (httpx.HTTPError, ValueError) as error:
            name = f"Mesos at {server}"
            raise unanswered(name, error, "see scheduler.mesos, and the sandbox in the pages of Mesos") from error

    def request(self, method: str, path: str, body: object = None, query: Mapping[str, str] | None = None) -> object:
        """Return the answer of the first server that can be reached, as `RestApi` does."""
        response = self._send(method, path, body, query)
        try:
            return response.json() if response.content else None
        except ValueError as error:
            msg = (
                f"{response.url.host} answers, but it is not Marathon: {method} /v2/{path} is not JSON; correct "
                "scheduler.addresses"
            )
            raise SchedulerError(msg) from error

    def _send(self, method: str, path: str, body: object, query: Mapping[str, str] | None) -> httpx.Response:
        access = self.access
        failed: Exception | None = None
        for address in access.addresses:
            try:
                # Nobody closes a scheduler, so a connection lasts for one request.
                with httpx.Client(verify=access.tls, timeout=_TIME_LIMITS, follow_redirects=False) as client:
                    response = client.request(
                        method,
                        f"{address}/v2/{path}",
                        json=body,
                        params=query,
                        headers={"Accept": "application/json", **access.headers},
                        auth=access.login,
                    )
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:  # nothing was sent
                failed = failed or error
                continue
            except httpx.HTTPError as error:
                server = f"marathon at {address}"
                raise unanswered(server, error, "see its log, and try again") from error
            if not response.is_success:
                said, remedy = _said(response), _remedy(access, response.status_code)
                request = f"marathon refuses {method} /v2/{path}"
                raise refused(request, said, response.status_code, remedy)
            return response
        assert failed is not None  # noqa: S101 - there is at least one address
        server = f"marathon at {', '.join(access.addresses)}"
        raise unanswered(server, failed, "correct scheduler.addresses, or start it") from failed


def _said(response: httpx.Response) -> str:
    """Return Marathon's message, with the fields that it does not accept."""
    try:
        found = fields(response.json())
    except ValueError:
        return response.reason_phrase  # a proxy has answered, in HTML
    wrong = [f"{each.get('path')}: {each.get('errors')}" for each in items(found.get("details"))]
    return "; ".join([str(found.get("message") or response.reason_phrase), *wrong])


def _remedy(access: MarathonAccess, status: int) -> str:
    if status == httpx.codes.UNAUTHORIZED and not access.signed_by:
        return "set scheduler.token (DC/OS), or scheduler.login and scheduler.password: none was sent"
    if status == httpx.codes.UNAUTHORIZED:
        return f"correct {access.signed_by}; a token of DC/OS expires: `dcos auth login`"
    if status == httpx.codes.FORBIDDEN:
        return "grant the rights in the README of heron-scheduler-marathon, or correct scheduler.group"
    return "correct the section `scheduler` of the profile" if status in {400, 422} else ""
