"""Requests to the API server: JSON in, JSON out, and failures in the server's own words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import httpx

from heron.errors import SchedulerError
from heron_scheduler_kubernetes.json_values import Json, fields
from heron_scheduler_kubernetes.kubeconfig import ApiAccess

__all__ = ["MERGE", "ApiError", "KubernetesApi"]

_APPLY = "application/apply-patch+yaml"  # JSON is YAML
MERGE = "application/merge-patch+json"
_ANSWER_S = 4.0
_BUSY = 429
_PAUSES_S = (0.2, 0.5, 1.0)
_REMEDIES = {
    401: "log in again, and check the credentials of {origin}",
    403: "grant the Role in the README of heron-scheduler-kubernetes, or ask for quota",
    422: "correct the section `scheduler` of the profile",
}


class ApiError(SchedulerError):
    """The API server refuses a request; `status` is the code of HTTP."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class KubernetesApi:
    """One server and one user, in one namespace. Used from one thread."""

    def __init__(self, find: Callable[[], ApiAccess], namespace: str = "") -> None:
        """`find` is called before the first request, and again when the server refuses the credentials."""
        self._find = find
        self._namespace = namespace
        self._access: ApiAccess | None = None
        self._client: httpx.Client | None = None

    @property
    def access(self) -> ApiAccess:
        """The server and the user. Raises SchedulerError when there is none."""
        if self._access is None:
            self._access = self._find()
        return self._access

    @property
    def namespace(self) -> str:
        """The namespace of the profile, or else that of the context."""
        return self._namespace or self.access.namespace

    def path(self, kind: str, name: str = "") -> str:
        """Return the path of an object or a collection; a `kind` is ``v1/pods`` or ``apps/v1/statefulsets``."""
        group, _, plural = kind.rpartition("/")
        root = f"/api/{group}" if "/" not in group else f"/apis/{group}"
        return f"{root}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def find(self, path: str, query: Mapping[str, str] | None = None) -> Json | None:
        """GET; None when it does not exist."""
        try:
            return self.request("GET", path, query=query)
        except ApiError as error:
            if error.status != httpx.codes.NOT_FOUND:
                raise
            return None

    def delete(self, path: str, options: Json | None = None, query: Mapping[str, str] | None = None) -> None:
        """DELETE; what does not exist is no error."""
        try:
            self.request("DELETE", path, options, query=query)
        except ApiError as error:
            if error.status != httpx.codes.NOT_FOUND:
                raise

    def apply(self, path: str, document: Json) -> Json:
        """Create an object, or change it to what `document` says (server-side apply)."""
        query = {"fieldManager": "heron", "force": "true"}
        return self.request("PATCH", path, document, content_type=_APPLY, query=query)

    def request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Json:
        """Return the answer.

        Raises:
            ApiError: when the server refuses, with its message.
            SchedulerError: when it does not answer; the outcome is unknown.
        """
        return fields(self._send(method, path, body, content_type, query).json())

    def text(self, path: str, query: Mapping[str, str]) -> str:
        """Return an answer that is text. Raises as `request` does."""
        return self._send("GET", path, None, "application/json", query).text

    def _send(
        self, method: str, path: str, body: Json | None, content_type: str, query: Mapping[str, str] | None
    ) -> httpx.Response:
        pauses = list(_PAUSES_S)
        renewed = False
        while True:
            try:
                headers = {"Content-Type": content_type, "Authorization": f"Bearer {self.access.token}"}
                if not self.access.token:
                    del headers["Authorization"]
                response = self._opened().request(method, path, json=body, headers=headers, params=query)
            except httpx.HTTPError as error:
                why = str(error) or type(error).__name__
                msg = f"kubernetes at {self.access.server} does not answer: {why}; check {self.access.origin}"
                raise SchedulerError(msg) from error
            if response.status_code == _BUSY and pauses:
                threading.Event().wait(pauses.pop(0))
            elif response.status_code == httpx.codes.UNAUTHORIZED and not renewed:
                renewed = True  # a token of a plugin or of a service account is valid for minutes
                self._access = self._client = None
            elif response.is_success:
                return response
            else:
                raise self._refused(method, path, response)

    def _opened(self) -> httpx.Client:
        if self._client is None:
            access = self.access
            once = httpx.Limits(max_keepalive_connections=0)  # nobody closes a scheduler
            self._client = httpx.Client(
                base_url=access.server, verify=access.tls, timeout=_ANSWER_S, proxy=access.proxy, limits=once
            )
        return self._client

    def _refused(self, method: str, path: str, response: httpx.Response) -> ApiError:
        try:
            said = str(response.json()["message"])
        except (ValueError, KeyError, TypeError):
            said = response.text.strip()[:300] or response.reason_phrase
        status = response.status_code
        remedy = _REMEDIES.get(status, "").format(origin=self.access.origin)
        msg = f"kubernetes refuses {method} {path.partition('/namespaces/')[2] or path}: {said} ({status})"
        return ApiError(f"{msg}; {remedy}" if remedy else msg, status)
