"""Schemas of a registry with Confluent's API, and the wire format that names them: a zero byte, the id, the value.

The ids of schemas never change their meaning, so a task asks for each once. Only "there is no such schema" is about a
record. Whatever else goes wrong is about the registry or its user, and would turn each record into a dead letter. So
decoding waits then. The client of Confluent's package would bring six more packages into every task.
"""

from __future__ import annotations

import base64
import http.client
import json
import logging
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from heron.clock import monotonic_s
from heron.errors import ConnectorError, UsageError

__all__ = ["Schema", "SchemaRegistry", "body_of"]

_log = logging.getLogger(__name__)

_MAGIC, _HEAD_BYTES = 0, 5
_ANSWER_S = 10.0
_PAUSE_S, _TOLD_S = 0.5, 10.0
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_OF_RECORD = frozenset({404, 422})
_OF_LOGIN = frozenset({401, 403})
_LARGEST_BYTES = 16 * 1024 * 1024

Login = Callable[[], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema of the registry.

    Attributes:
        kind: ``AVRO``, ``JSON`` or ``PROTOBUF``.
        references: the schemas that it names, by the names that it has for them, each behind those that it needs.
    """

    id: int
    kind: str
    text: str
    references: tuple[tuple[str, str], ...] = ()


@dataclass
class SchemaRegistry:
    """Schemas by their ids, from ``URL/schemas/ids/ID``. Tasks keep what they have asked for.

    Args:
        url: such as ``https://registry.example.org:8081``.
        login: returns user and password; it is called in tasks, so they are not part of the topology.
        ca_file: certificates of authorities that the registry's certificate is checked with; else those of the system.
            The file is needed where the pipeline is made, and in the tasks.

    Raises:
        UsageError: when the URL is neither http nor https, or `ca_file` is not a file of certificates.
    """

    url: str
    login: Login | None = field(default=None, repr=False)
    ca_file: str | None = None
    _known: dict[int, Schema] = field(default_factory=dict, init=False, repr=False)

    kinds: ClassVar[frozenset[str]] = frozenset({"AVRO", "JSON", "PROTOBUF"})

    def __post_init__(self) -> None:
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            msg = f"SchemaRegistry: url={self.url!r} is not a URL such as https://registry.example.org:8081"
            raise UsageError(msg)
        if parts.password is not None:
            msg = "SchemaRegistry: the url has a password; give a function `login` that returns user and password"
            raise UsageError(msg)
        try:
            self._context()
        except _SetupError as error:
            msg = f"SchemaRegistry: {error}"
            raise UsageError(msg) from error

    def schema(self, number: int) -> Schema:
        """The schema with an id. While the registry is away or refuses its user, it waits, and logs why every 10 s.

        Raises:
            ConnectorError: when the registry has no such schema.
        """
        if number not in self._known:
            answer = self._asked(f"/schemas/ids/{number}", f"schema id {number}")
            references: dict[str, str] = {}
            self._add_references(answer, references)
            self._known[number] = Schema(
                number, str(answer.get("schemaType") or "AVRO"), str(answer["schema"]), tuple(references.items())
            )
        return self._known[number]

    def _add_references(self, answer: dict[str, Any], found: dict[str, str]) -> None:
        for each in answer.get("references") or ():
            if each["name"] not in found:
                subject = urllib.parse.quote(str(each["subject"]), safe="")
                path = f"/subjects/{subject}/versions/{int(each['version'])}"
                other = self._asked(path, f"version {each['version']} of subject {each['subject']!r}")
                self._add_references(other, found)
                found[each["name"]] = str(other["schema"])

    def _asked(self, path: str, what: str) -> dict[str, Any]:
        loudest, due_s = logging.WARNING, monotonic_s() + _TOLD_S
        while True:
            try:
                return self._answer(path)
            except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError, _SetupError) as error:
                if isinstance(error, urllib.error.HTTPError) and error.code in _OF_RECORD:
                    msg = f"schema registry {self.url}: {what}: {error.code} {_reason(error)}"
                    raise ConnectorError(msg) from error
                level, reason = _hindrance(error)
            if level > loudest or monotonic_s() >= due_s:
                loudest, due_s = max(level, loudest), monotonic_s() + _TOLD_S
                _log.log(level, "schema registry %s: %s; decoding waits for %s", self.url, reason, what)
            threading.Event().wait(_PAUSE_S)

    def _answer(self, path: str) -> dict[str, Any]:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        request = urllib.request.Request(self.url.rstrip("/") + path, headers=headers)  # noqa: S310  # checked above
        if self.login is not None:
            try:
                pair = ":".join(self.login()).encode()
            except Exception as error:  # whatever the author's function raises
                msg = f"`login` raised {error!r}"
                raise _SetupError(msg) from error
            # A redirect may lead to another host, which must not get the password.
            request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair).decode()}")
        context = self._context() if self.url.startswith("https") else None
        with urllib.request.urlopen(request, timeout=_ANSWER_S, context=context) as response:  # noqa: S310  # as above
            answer: dict[str, Any] = json.loads(response.read(_LARGEST_BYTES))
        answer["schema"]  # raises if it is not there
        return answer

    def _context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:
            msg = f"ca_file={self.ca_file!r} is not a file of certificates: {error}"
            raise _SetupError(msg) from error


class _SetupError(Exception):
    """What the author has given does not work in this process."""


def _hindrance(error: Exception) -> tuple[int, str]:
    """Why there is no answer, and how loud that is: an error if it needs the help of people."""
    if isinstance(error, urllib.error.HTTPError):
        level = logging.WARNING if error.code in _PASSING else logging.ERROR
        remedy = "; correct what `login` returns, or the rights of this user" if error.code in _OF_LOGIN else ""
        return level, f"{error.code} {_reason(error)}{remedy}"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return logging.ERROR, f"{cause.verify_message}; give its authority as `ca_file`"
    if isinstance(cause, _SetupError):
        return logging.ERROR, str(cause)
    if isinstance(cause, (str, OSError, http.client.HTTPException)):
        return logging.WARNING, f"it does not answer: {cause}"
    if isinstance(cause, ValueError):  # also an answer that a restart has cut
        return logging.WARNING, f"the answer is not JSON: {cause}"
    return logging.ERROR, f"the answer is not that of a registry: {cause!r}"


def _reason(error: urllib.error.HTTPError) -> str:
    """The registry's own words, if it has any."""
    try:
        with error:
            return str(json.loads(error.read(_LARGEST_BYTES))["message"])
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        return str(error.reason)


def body_of(data: bytes) -> tuple[int, memoryview]:
    """The id of the schema, and the encoded value.

    Raises:
        ConnectorError: when the bytes are not of this format.
    """
    if len(data) < _HEAD_BYTES or data[0] != _MAGIC:
        msg = (
            f"{len(data)} bytes that begin with {data[:_HEAD_BYTES].hex(' ') or 'nothing'} are not in the wire format "
            "of a schema registry, which begins with 00 and the id of the schema in 4 bytes"
        )
        raise ConnectorError(msg)
    return int.from_bytes(data[1:_HEAD_BYTES], "big"), memoryview(data)[_HEAD_BYTES:]
