"""Requests to the schedulers of Aurora: Thrift over HTTP, documents as in JSON, failures in Aurora's own words.

This module encloses the untyped parts of the Thrift library.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

import httpx
import thriftpy2
from thriftpy2.protocol.binary import TBinaryProtocol
from thriftpy2.protocol.json import struct_to_json, struct_to_obj
from thriftpy2.thrift import TMessageType
from thriftpy2.transport import TMemoryBuffer

from heron.errors import SchedulerError
from heron_scheduler_aurora.aurora_words import ResponseCode
from heron_scheduler_aurora.options import AuroraOptions
from heron_scheduler_kit.managed.rest_api import Json, fields, items, refused, unanswered

__all__ = ["AuroraApi", "AuroraRefusal"]

_TIME_LIMITS = httpx.Timeout(4.0, connect=1.5)  # a machine that is off leaves time for the next one
_OBSERVER_S = 2.0
_BINARY = "application/vnd.apache.thrift.binary"
_LEADER_HOPS = 3
_REMEDIES = {
    ResponseCode.AUTH_FAILED: "grant the rights in the README of heron-scheduler-aurora, or use another role",
    ResponseCode.ERROR_TRANSIENT: "try again",
}
_REMEDY_OF_QUOTA = "use scheduler.tier: preemptible, smaller containers, or ask for more: see `aurora quota get`"


class AuroraRefusal(SchedulerError):
    """Aurora refuses a request; `code` is its reason."""

    def __init__(self, message: str, code: ResponseCode) -> None:
        super().__init__(message)
        self.code = code


class _Struct(Protocol):
    """A structure of the interface; the result of a method has the field `success`."""

    success: object

    def read(self, protocol: _Wire) -> None: ...

    def write(self, protocol: _Wire) -> None: ...


class _Buffer(Protocol):
    def getvalue(self) -> bytes: ...


class _Wire(Protocol):
    """The binary encoding of messages, in a buffer."""

    def write_message_begin(self, name: str, kind: int, number: int) -> None: ...

    def write_message_end(self) -> None: ...

    def read_message_begin(self) -> tuple[str, int, int]: ...


_buffer = cast("Callable[..., _Buffer]", TMemoryBuffer)
_wire = cast("Callable[[_Buffer], _Wire]", TBinaryProtocol)
_to_struct = cast("Callable[[Json, _Struct], _Struct]", struct_to_obj)
_to_document = cast("Callable[[object], object]", struct_to_json)


class _Interface(Protocol):
    """The module that the library makes of ``aurora.thrift``."""

    Scheduler: type


@dataclass(frozen=True, slots=True)
class _Access:
    login: tuple[str, str] | None = field(repr=False)
    tls: ssl.SSLContext


class AuroraApi:
    """One cluster and one user. Used from one thread."""

    def __init__(self, options: AuroraOptions) -> None:
        self._options = options
        self._addresses = tuple(each.rstrip("/") for each in options.addresses)
        self._found: _Access | None = None
        path = str(Path(__file__).with_name("aurora.thrift"))
        self._interface = cast("_Interface", thriftpy2.load(path, "heron_aurora_thrift"))

    @property
    def page(self) -> str:
        """The address of the web UI."""
        return self._options.page.rstrip("/") or self._addresses[0]

    def call(self, name: str, **arguments: object) -> Json:
        """Call a method and return the field of its result, as a document.

        Raises:
            AuroraRefusal: when Aurora refuses, with its message.
            SchedulerError: when no scheduler answers, or another server does; the outcome is unknown.
        """
        answer = self.response(name, **arguments)
        code = ResponseCode(int(str(answer.get("responseCode"))))
        if code not in {ResponseCode.OK, ResponseCode.WARNING}:
            said = "; ".join(str(each.get("message")) for each in items(answer.get("details"))) or code.name
            msg = f"aurora refuses {name}: {said} ({code.name})"
            remedy = _REMEDY_OF_QUOTA if "quota" in said.lower() else _REMEDIES.get(code, "")
            raise AuroraRefusal(f"{msg}; {remedy}" if remedy else msg, code)
        results = list(fields(answer.get("result")).values())
        return fields(results[0]) if results else {}

    def response(self, name: str, **arguments: object) -> Json:
        """Call a method and return the whole answer. Raises SchedulerError when no scheduler answers."""
        body = self._encoded(name, arguments)
        response = self._post(name, body)
        try:
            return self._decoded(name, response.content)
        except Exception as error:  # of any kind, because another server may answer anything
            msg = f"{response.url.host} answers, but it is not Aurora ({error}); correct scheduler.addresses"
            raise SchedulerError(msg) from error

    def document(self, url: str) -> object:
        """GET a document of a Thermos observer, without credentials. Raises SchedulerError when there is none."""
        try:
            with httpx.Client(verify=self._access().tls, timeout=_OBSERVER_S) as client:
                found: object = client.get(url).raise_for_status().json()
                return found
        except (httpx.HTTPError, ValueError) as error:
            server = f"the observer at {httpx.URL(url).netloc.decode()}"
            raise unanswered(server, error, "see scheduler.observer_port, and the page of the task") from error

    def _encoded(self, name: str, arguments: dict[str, object]) -> bytes:
        buffer = _buffer()
        protocol = _wire(buffer)
        protocol.write_message_begin(name, TMessageType.CALL, 0)
        made = getattr(self._interface.Scheduler, f"{name}_args")()
        _to_struct(arguments, made).write(protocol)
        protocol.write_message_end()
        return bytes(buffer.getvalue())

    def _decoded(self, name: str, content: bytes) -> Json:
        protocol = _wire(_buffer(content))
        _, kind, _ = protocol.read_message_begin()
        if kind != TMessageType.REPLY:
            msg = f"it does not know {name}"
            raise ValueError(msg)
        result = getattr(self._interface.Scheduler, f"{name}_result")()
        result.read(protocol)
        return fields(_to_document(result.success))

    def _post(self, name: str, body: bytes) -> httpx.Response:
        failed: Exception | None = None
        for address in self._addresses:
            try:
                response = self._send(f"{address}/api", body)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:  # nothing was sent
                failed = failed or error
                continue
            except httpx.HTTPError as error:
                server = f"aurora at {address}"
                raise unanswered(server, error, "see its log, and try again") from error
            if response.status_code == httpx.codes.SERVICE_UNAVAILABLE:  # a scheduler that knows no leader
                failed = failed or SchedulerError("it has no leader")
                continue
            if not response.is_success:
                request = f"aurora refuses {name}"
                said = response.reason_phrase
                raise refused(request, said, response.status_code, self._remedy(response.status_code))
            return response
        assert failed is not None  # noqa: S101 - there is at least one address
        server = f"aurora at {', '.join(self._addresses)}"
        raise unanswered(server, failed, "correct scheduler.addresses, or start it") from failed

    def _send(self, url: str, body: bytes) -> httpx.Response:
        """Send a request, and follow to the leader with the credentials, which a library leaves behind.

        Raises:
            SchedulerError: when they would go to another host, or without encryption after a host with encryption.
        """
        headers = {"Content-Type": _BINARY, "Accept": _BINARY}
        access = self._access()
        # Nobody closes a scheduler, so a connection lasts for one request.
        with httpx.Client(verify=access.tls, timeout=_TIME_LIMITS, auth=access.login) as client:
            response = client.post(url, content=body, headers=headers)
            for _ in range(_LEADER_HOPS):
                if response.next_request is None:
                    break
                self._check_hop(response.request.url, response.next_request.url)
                response = client.post(response.next_request.url, content=body, headers=headers)
            return response

    def _check_hop(self, here: httpx.URL, there: httpx.URL) -> None:
        server, leader = f"aurora at {here.netloc.decode()}", f"{there.scheme}://{there.netloc.decode()}"
        if there.host not in {httpx.URL(each).host for each in self._addresses}:
            msg = f"{server} names the leader {leader}, which is not followed: add it to scheduler.addresses"
            raise SchedulerError(msg)
        if here.scheme == "https" and there.scheme != "https":
            msg = f"{server} names the leader {leader}, which is not followed: it must redirect to https"
            raise SchedulerError(msg)

    def _access(self) -> _Access:
        if self._found is None:
            given = self._options
            try:
                tls = ssl.create_default_context(cafile=given.ca_file or None)
            except OSError as error:  # SSLError is one
                msg = f"scheduler.ca_file: {given.ca_file} cannot be used: {error}; name a file with certificates (PEM)"
                raise SchedulerError(msg) from error
            self._found = _Access((given.login, given.password) if given.login else None, tls)
        return self._found

    def _remedy(self, status: int) -> str:
        if status == httpx.codes.UNAUTHORIZED and not self._options.login:
            return "set scheduler.login and scheduler.password: none was sent"
        if status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            return "correct scheduler.login and scheduler.password"
        return "correct scheduler.addresses" if status == httpx.codes.NOT_FOUND else ""
