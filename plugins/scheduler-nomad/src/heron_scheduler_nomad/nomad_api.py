"""Requests to a Nomad agent: JSON in, JSON out, and failures in Nomad's own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import httpx

from heron.errors import SchedulerError
from heron_scheduler_nomad.nomad_access import NomadAccess

__all__ = ["ApiError", "Json", "NomadApi", "fields", "items"]

Json = dict[str, object]

_ANSWER_S = 4.0
_MOST = 400
_NEEDS_TLS = "HTTP request to an HTTPS server"
_NO_NAMESPACE = "nonexistent namespace"


class ApiError(SchedulerError):
    """Nomad refuses a request; `status` is the code of HTTP."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class NomadApi:
    """One agent, one user and one namespace. Used from one thread."""

    def __init__(self, find: Callable[[], NomadAccess]) -> None:
        """`find` is called before the first request."""
        self._find = find
        self._access: NomadAccess | None = None

    @property
    def access(self) -> NomadAccess:
        """The agent and the user. Raises SchedulerError when there is none."""
        if self._access is None:
            self._access = self._find()
        return self._access

    def find(self, path: str) -> Json | None:
        """GET an object; None when it does not exist."""
        try:
            return fields(self.request("GET", path))
        except ApiError as error:
            if error.status != httpx.codes.NOT_FOUND:
                raise
            return None

    def list(self, path: str, query: Mapping[str, str] | None = None) -> list[Json]:
        """GET a list of objects."""
        return items(self.request("GET", path, query=query))

    def request(
        self, method: str, path: str, body: Json | None = None, query: Mapping[str, str] | None = None
    ) -> object:
        """Return the answer; `path` begins after ``/v1``.

        Raises:
            ApiError: when Nomad refuses, with its message.
            SchedulerError: when it does not answer, or the answer is not Nomad's; the outcome is unknown.
        """
        response = self._send(method, path, body, query)
        try:
            return response.json() if response.content else None
        except ValueError as error:
            at = self.access
            msg = f"{at.address} answers, but it is not Nomad: {method} {path} is not JSON; correct {at.address_from}"
            raise SchedulerError(msg) from error

    def text(self, path: str, query: Mapping[str, str]) -> str:
        """Return an answer that is text. Raises as `request` does."""
        return self._send("GET", path, None, query).text

    def _send(self, method: str, path: str, body: Json | None, query: Mapping[str, str] | None) -> httpx.Response:
        access = self.access
        where = {"namespace": access.namespace, **({"region": access.region} if access.region else {}), **(query or {})}
        headers = {"X-Nomad-Token": access.token} if access.token else {}
        socket = access.socket
        verify = access.tls if access.tls is not None else False
        try:
            # Nobody closes a scheduler, so a connection lasts for one request.
            transport = httpx.HTTPTransport(uds=socket) if socket else httpx.HTTPTransport(verify=verify)
            with httpx.Client(
                base_url="http://nomad" if socket else access.address, transport=transport, timeout=_ANSWER_S
            ) as client:
                response = client.request(method, f"/v1/{path}", json=body, headers=headers, params=where)
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            remedy = f"correct {access.address_from}, or see `nomad server members`"
            msg = f"nomad at {access.address} does not answer: {why}; {remedy}"
            raise SchedulerError(msg) from error
        if not response.is_success:
            said = " ".join(response.text.split())[:_MOST] or response.reason_phrase
            msg = f"nomad refuses {method} {path}: {said} ({response.status_code})"
            raise ApiError("; ".join(filter(None, (msg, _remedy(access, response)))), response.status_code)
        return response


def _remedy(access: NomadAccess, response: httpx.Response) -> str:
    if response.status_code == httpx.codes.FORBIDDEN and not access.token:
        return f"set {access.token_from}: no token was sent"
    if response.status_code == httpx.codes.FORBIDDEN:
        return f"grant the ACL policy in the README of heron-scheduler-nomad, or correct {access.token_from}"
    if _NEEDS_TLS in response.text:
        return f"use https:// in {access.address_from}"
    if _NO_NAMESPACE in response.text:
        return "correct scheduler.namespace or NOMAD_NAMESPACE"
    return "correct the section `scheduler` of the profile" if response.status_code == httpx.codes.BAD_REQUEST else ""


def fields(found: object) -> Json:
    """Return an object of an answer; an empty one for anything else."""
    return found if isinstance(found, dict) else {}


def items(found: object) -> list[Json]:
    """Return the objects of a list in an answer; none for anything else."""
    return [fields(each) for each in found] if isinstance(found, list) else []
