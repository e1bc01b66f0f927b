"""Requests to the resource manager, and to node managers: JSON in, JSON out, and failures in YARN's own words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import httpx

from heron.clock import monotonic_s
from heron.errors import SchedulerError
from heron_scheduler_kit.managed.rest_api import ApiError, Json, RestApi, fields, items, refused, unanswered
from heron_scheduler_yarn.service_view import is_live
from heron_scheduler_yarn.yarn_access import YarnAccess

__all__ = ["SERVICES", "YarnApi"]

SERVICES = "/app/v1/services"
_CLUSTER = "/ws/v1/cluster"
_ANSWER_S = 4.0
# 0.7 to 5 s: YARN writes the service into HDFS twice, and asks each 200 ms whether its application is accepted. The
# first service after a start of the resource manager needs 3 to 20 s, because Java loads the classes for it.
_CREATE_S = 20.0
_NODE_S = 2.0
_POLL_S = 0.1
_REMEDIES = {
    401: "the cluster wants Kerberos, which this driver does not have; see the README of heron-scheduler-yarn",
    403: "grant the right to submit to the queue, or set scheduler.queue or scheduler.user",
    404: "set yarn.webapp.api-service.enable to true on the resource manager",
}
_REMEDIES_OF_WORDS = {
    "larger than configured max": "in MiB; request less for its components, or ask for a larger "
    "yarn.scheduler.maximum-allocation-mb",
    "unknown queue": "set scheduler.queue to one that `yarn queue -list` shows",
    "not have permission to submit": _REMEDIES[403],
}


class YarnApi(RestApi[YarnAccess]):
    """One cluster and one user."""

    def __init__(self, find: Callable[[], YarnAccess], create_s: float = _CREATE_S) -> None:
        """`create_s` is the limit of a POST."""
        super().__init__(find)
        self._create_s = create_s
        self._tls = httpx.create_ssl_context()  # once: it takes 55 ms of a processor

    def service(self, name: str) -> Json | None:
        """Return a service with its components and containers; None when YARN has none of that name."""
        return self.find(f"{SERVICES}/{name}")

    def create(self, service: Json) -> None:
        """Create a service. YARN goes on when its answer is late, so a service that appears then is created.

        Raises:
            SchedulerError: when YARN refuses, or the service does not appear within the same time again.
        """
        try:
            self.request("POST", SERVICES, service)
        except ApiError:
            raise
        except SchedulerError:
            if not _poll(lambda: self._appears(str(service["name"])), self._create_s):
                raise

    def kill(self, name: str) -> None:
        """Kill the applications of a service. YARN accepts that at once, and the end takes up to a second."""
        for each in self.live(name):
            self.request("PUT", f"{_CLUSTER}/apps/{each['id']}/state", {"state": "KILLED"})
        _poll(lambda: not self.live(name), _ANSWER_S)

    def live(self, name: str) -> list[Json]:
        """Return the applications of a service that have not ended."""
        return [each for each in self.applications(name) if is_live(each)]

    def _appears(self, name: str) -> bool:
        try:
            return bool(self.applications(name))
        except SchedulerError:  # as slow as the first answer
            return False

    def applications(self, name: str) -> list[Json]:
        """Return the applications of a service, also those that have ended."""
        found = self.cluster("apps", {"applicationTypes": "yarn-service", "name": name})
        return [each for each in items(fields(found.get("apps")).get("app")) if each.get("name") == name]

    def cluster(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Return what the resource manager says about its cluster; `path` begins after ``/ws/v1/cluster/``."""
        return self.request("GET", f"{_CLUSTER}/{path}", query=query)

    def request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        query: Mapping[str, str] | None = None,
        *,
        limit_s: float | None = None,
    ) -> Json:
        """Return the answer of the first resource manager that answers, as `RestApi` does, within `limit_s`."""
        errors: list[Exception] = []
        limit_s = limit_s or (self._create_s if method == "POST" else _ANSWER_S)
        timeout_s = limit_s / len(self.access.addresses)
        for address in self.access.addresses:
            try:
                response = self._send(method, f"{address}{path}", body, query, timeout_s)
            except httpx.HTTPError as error:
                errors.append(error)
                continue
            return fields(response.json() if response.content else None)
        remedy = "check scheduler.address, and see `yarn node -list`"
        if isinstance(errors[0], httpx.TimeoutException):
            again = "if it has just started, repeat this in half a minute"
            remedy = f"the limit is {timeout_s:.3g} s; {again}, else {remedy}"
        server = f"YARN at {', '.join(self.access.addresses)}"
        raise unanswered(server, errors[0], remedy) from errors[0]

    def on_node(self, address: str, path: str, query: Mapping[str, str] | None = None) -> httpx.Response | None:
        """Return the answer of a node manager (``HOST:PORT``); None when it does not answer, or has no such object."""
        try:
            return self._send("GET", f"http://{address}/ws/v1/node/{path}", None, query, _NODE_S)
        except (httpx.HTTPError, ApiError):
            return None

    def _send(
        self, method: str, url: str, body: Json | None, query: Mapping[str, str] | None, timeout_s: float
    ) -> httpx.Response:
        parameters = {"user.name": self.access.user, **(query or {})}
        headers = {"X-Requested-By": "heron"}  # the filter against forged requests wants a header
        # A connection lasts for one request. The standby of two managers leads to the active one.
        with httpx.Client(verify=self._tls, timeout=timeout_s, follow_redirects=True) as client:
            response = client.request(method, url, json=body, params=parameters, headers=headers)
        if not response.is_success:
            said, of_status = _said(response), _REMEDIES.get(response.status_code, "")
            remedy = next((each for words, each in _REMEDIES_OF_WORDS.items() if words in said), of_status)
            request = f"YARN refuses {method} {httpx.URL(url).path}"
            raise refused(request, said, response.status_code, remedy)
        return response


def _poll(done: Callable[[], bool], limit_s: float) -> bool:
    pause, end_s = threading.Event(), monotonic_s() + limit_s
    while not done():
        if monotonic_s() > end_s:
            return False
        pause.wait(_POLL_S)
    return True


def _said(response: httpx.Response) -> str:
    """Return YARN's message: the services have a field for it, the rest of the API an exception."""
    try:
        found = fields(response.json())
    except ValueError:
        return response.reason_phrase
    return str(
        found.get("diagnostics") or fields(found.get("RemoteException")).get("message") or response.reason_phrase
    )
