"""Requests to the API server: JSON in, JSON out, and failures in the server's own words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import httpx

from heron_scheduler_kit.managed.rest_api import ApiError, Json, RestApi, fields, refused, unanswered
from heron_scheduler_kubernetes.kubeconfig import ApiAccess

__all__ = ["MERGE", "KubernetesApi"]

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


class KubernetesApi(RestApi[ApiAccess]):
    """One server and one user, in one namespace."""

    def __init__(self, find: Callable[[], ApiAccess], namespace: str = "") -> None:
        """`find` is called before the first request, and again when the server refuses the credentials."""
        super().__init__(find)
        self._namespace = namespace
        self._client: httpx.Client | None = None

    @property
    def namespace(self) -> str:
        """The namespace of the profile, or else that of the context."""
        return self._namespace or self.access.namespace

    def path(self, kind: str, name: str = "") -> str:
        """Return the path of an object or a collection; a `kind` is ``v1/pods`` or ``apps/v1/statefulsets``."""
        group, _, plural = kind.rpartition("/")
        root = f"/api/{group}" if "/" not in group else f"/apis/{group}"
        return f"{root}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

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
        query: Mapping[str, str] | None = None,
        *,
        content_type: str = "application/json",
    ) -> Json:
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
                server = f"kubernetes at {self.access.server}"
                raise unanswered(server, error, f"check {self.access.origin}") from error
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
            said = response.text or response.reason_phrase
        request = f"kubernetes refuses {method} {path.partition('/namespaces/')[2] or path}"
        remedy = _REMEDIES.get(response.status_code, "").format(origin=self.access.origin)
        return refused(request, said, response.status_code, remedy)
