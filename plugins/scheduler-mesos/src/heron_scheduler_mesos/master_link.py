"""The link to the leading master: a subscription for events, and calls one after the other.

One thread reads the events of a subscription, one makes the calls. Both report to the queue that `receive` empties.
A call without a good answer ends the subscription: whether it has worked shows after the next one. Mesos refuses calls
of a former subscription, by ``Mesos-Stream-Id``.
"""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import httpx

from heron.errors import SchedulerError
from heron_scheduler_kit.managed.rest_api import Json, fields
from heron_scheduler_mesos.mesos_access import MesosAccess, leader
from heron_scheduler_mesos.record_io import Records

__all__ = ["LinkLost", "MasterLink", "framework_id"]

_PATH = "/api/v1/scheduler"
_STREAM = "Mesos-Stream-Id"
_MOST = 400
_REMEDIES = {
    httpx.codes.UNAUTHORIZED: "correct scheduler.principal and scheduler.secret",
    httpx.codes.FORBIDDEN: "grant the rights in the README of heron-scheduler-mesos, or correct scheduler.role",
    httpx.codes.NOT_FOUND: "it is not a master of Mesos; correct scheduler.masters",
}


@dataclass(frozen=True, slots=True)
class LinkLost:
    """The subscription has ended, or there was none. `refused`: a master answers, and says no."""

    reason: str
    refused: bool = False


class _RefusedError(SchedulerError):
    """A master refuses a request."""


class MasterLink:
    """Used from one thread. Until `subscribe` succeeds, and after `LinkLost`, calls are dropped."""

    def __init__(self, access: MesosAccess, silence_s: float) -> None:
        self._access = access
        self._silence_s = silence_s
        self._generation = 0
        self._streams: dict[int, tuple[str, str]] = {}
        self._leader = ""
        self._made = True
        self._events: queue.SimpleQueue[tuple[int, Json | LinkLost]] = queue.SimpleQueue()
        self._calls: queue.SimpleQueue[tuple[int, Json] | None] = queue.SimpleQueue()
        self._waking, self._wake = socket.socketpair()
        self._waking.setblocking(False)
        self._wake.setblocking(False)
        self._caller = threading.Thread(target=self._call_all, name="mesos-calls", daemon=True)
        self._caller.start()

    @property
    def leader(self) -> str:
        """The URL of the master that has answered last; "" before."""
        return self._leader

    def fileno(self) -> int:
        """Return a descriptor that is ready when `receive` has something."""
        return self._waking.fileno()

    def subscribe(self, framework: Json) -> None:
        """Ask for a subscription, which replaces the present one. Its first event, or `LinkLost`, follows."""
        self._generation += 1
        body: Json = {"type": "SUBSCRIBE", "subscribe": {"framework_info": framework, "force": True}}
        if "id" in framework:
            body["framework_id"] = framework["id"]
        arguments = (self._generation, body)
        threading.Thread(target=self._read, args=arguments, name="mesos-events", daemon=True).start()

    def call(self, body: Json) -> None:
        """Make a call after those before; a failure is reported as `LinkLost`."""
        self._calls.put((self._generation, body))

    def receive(self) -> Iterator[Json | LinkLost]:
        """Return what has arrived from the present subscription."""
        with suppress(OSError):
            self._waking.recv(4096)
        while not self._events.empty():
            generation, event = self._events.get()
            if generation != self._generation:
                continue
            if isinstance(event, LinkLost):
                self._generation += 1  # nothing more is heard of it
            yield event

    def close(self, limit_s: float) -> bool:
        """Make the remaining calls; return whether the last one was made within the limit."""
        self._calls.put(None)
        self._caller.join(limit_s)
        made = self._made and not self._caller.is_alive()
        self._generation += 1
        self._waking.close()
        self._wake.close()
        return made

    # -- the threads

    def _report(self, generation: int, event: Json | LinkLost) -> None:
        self._events.put((generation, event))
        with suppress(OSError):  # it is full, or closed
            self._wake.send(b"\0")

    def _read(self, generation: int, body: Json) -> None:
        refused = False
        try:
            with self._opened(body) as (url, response):
                self._leader = url
                self._streams[generation] = (url, response.headers.get(_STREAM, ""))
                records = Records()
                for chunk in response.iter_raw():
                    for record in records.feed(chunk):
                        if generation != self._generation:
                            return
                        self._report(generation, fields(json.loads(record)))
            reason = f"{url} has closed the subscription"
        except _RefusedError as error:
            reason, refused = str(error), True
        except (httpx.HTTPError, SchedulerError, ValueError) as error:
            reason = f"the subscription has ended: {str(error) or type(error).__name__}"
        finally:
            self._streams.pop(generation, None)
        self._report(generation, LinkLost(reason, refused))

    @contextmanager
    def _opened(self, body: Json) -> Iterator[tuple[str, httpx.Response]]:
        """Ask the last leader and all masters in turn, and the master that one of them names."""
        with ExitStack() as stack:
            client = stack.enter_context(self._access.client(self._silence_s))
            yield self._leading(partial(_stream, client, stack, body))

    def _leading(self, ask: Callable[[str], httpx.Response]) -> tuple[str, httpx.Response]:
        urls = deque(filter(None, (self._leader, *self._access.masters)))
        asked: set[str] = set()
        failures: list[str] = []
        while urls:
            url = urls.popleft()
            if url in asked:
                continue
            asked.add(url)
            try:
                response = ask(url)
                if response.status_code == httpx.codes.OK:
                    return url, response
                if response.status_code == httpx.codes.TEMPORARY_REDIRECT:
                    urls.appendleft(leader(url, response.headers.get("Location", "")))
                    continue
                response.read()
                failures.append(_refusal(url, response))
                if response.is_client_error:
                    raise _RefusedError(failures[-1])
            except httpx.TransportError as error:
                failures.append(f"{url} does not answer: {str(error) or type(error).__name__}")
        why = "; ".join(failures) or "each one names another"
        msg = f"no leading master of Mesos: {why}; correct scheduler.masters, or see whether they run"
        raise SchedulerError(msg)

    def _call_all(self) -> None:
        with self._access.client() as client:
            while (asked := self._calls.get()) is not None:
                generation, body = asked
                stream = self._streams.get(generation)
                reason = self._failure(client, stream, body) if stream else "the subscription has ended"
                self._made = not reason
                if reason:
                    self._report(generation, LinkLost(f"a call of {body['type']} has failed: {reason}"))

    def _failure(self, client: httpx.Client, stream: tuple[str, str], body: Json) -> str:
        url, stream_id = stream
        try:
            response = client.post(url + _PATH, json=body, headers={_STREAM: stream_id})
        except httpx.HTTPError as error:
            return f"{url} does not answer: {str(error) or type(error).__name__}"
        return "" if response.status_code == httpx.codes.ACCEPTED else _refusal(url, response)


def _stream(client: httpx.Client, stack: ExitStack, body: Json, url: str) -> httpx.Response:
    return stack.enter_context(client.stream("POST", url + _PATH, json=body))


def framework_id(event: Json) -> str:
    """Return the id of the framework in a SUBSCRIBED event; "" for another event."""
    return str(fields(fields(event.get("subscribed")).get("framework_id")).get("value") or "")


def _refusal(url: str, response: httpx.Response) -> str:
    said = " ".join(response.text.split())[:_MOST] or response.reason_phrase
    remedy = _REMEDIES.get(httpx.codes(response.status_code)) if response.status_code in _REMEDIES else None
    return f"mesos at {url} refuses: {said} ({response.status_code})" + (f"; {remedy}" if remedy else "")
