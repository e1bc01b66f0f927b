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
_FORBIDDEN = 403
_REMEDIES = {
    _FORBIDDEN: "grant the ACL policy in the README of heron-scheduler-nomad, or correct NOMAD_TOKEN",
    400: "correct the section `scheduler` of the profile",
}


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
            SchedulerError: when it does not answer; the outcome is unknown.
        """
        response = self._send(method, path, body, query)
        return response.json() if response.content else None

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
            msg = f"nomad at {access.address} does not answer: {why}; check NOMAD_ADDR, and see `nomad server members`"
            raise SchedulerError(msg) from error
        if not response.is_success:
            said = response.text.strip()[:_MOST] or response.reason_phrase
            remedy = _REMEDIES.get(response.status_code, "")
            msg = f"nomad refuses {method} {path}: {said} ({response.status_code})"
            raise ApiError(f"{msg}; {remedy}" if remedy else msg, response.status_code)
        return response


def fields(found: object) -> Json:
    """Return an object of an answer; an empty one for anything else."""
    return found if isinstance(found, dict) else {}


def items(found: object) -> list[Json]:
    """Return the objects of a list in an answer; none for anything else."""
    return [fields(each) for each in found] if isinstance(found, list) else []
