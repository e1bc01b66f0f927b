"""Requests to a Nomad agent: JSON in, JSON out, and failures in Nomad's own words."""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from heron.errors import SchedulerError
from heron_scheduler_kit.managed.rest_api import Json, RestApi, items, refused, unanswered
from heron_scheduler_nomad.nomad_access import NomadAccess

__all__ = ["NomadApi"]

_ANSWER_S = 4.0
_NEEDS_TLS = "HTTP request to an HTTPS server"
_NO_NAMESPACE = "nonexistent namespace"


class NomadApi(RestApi[NomadAccess]):
    """One agent, one user and one namespace. Paths begin after ``/v1``."""

    def list(self, path: str, query: Mapping[str, str] | None = None) -> list[Json]:
        """GET a list of objects."""
        return items(self.request("GET", path, query=query))

    def request(
        self, method: str, path: str, body: Json | None = None, query: Mapping[str, str] | None = None
    ) -> object:
        """Return the answer, as `RestApi` does. An answer that is not Nomad's is none: it raises SchedulerError."""
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
            remedy = f"correct {access.address_from}, or see `nomad server members`"
            server = f"nomad at {access.address}"
            raise unanswered(server, error, remedy) from error
        if not response.is_success:
            said, remedy = response.text or response.reason_phrase, _remedy(access, response)
            request = f"nomad refuses {method} {path}"
            raise refused(request, said, response.status_code, remedy)
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
