"""Values whose schema is in a registry: those of Confluent's serializers are read, and others are errors."""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import pickle
import re
import ssl
import threading
import urllib.error
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from heron.errors import ConnectorError, UsageError
from heron_connector_kafka import schema_registry as schema_registry_module
from heron_connector_kafka.avro import AvroDecoder
from heron_connector_kafka.json_schema import JsonDecoder
from heron_connector_kafka.protobuf import ProtobufDecoder
from heron_connector_kafka.schema_registry import SchemaRegistry
from heron_testing.ports import free_port
from heron_testing_servers.schema_registry import SchemaRegistryServer

AVRO = {
    "type": "record",
    "name": "Click",
    "fields": [{"name": "page", "type": "string"}, {"name": "ms", "type": "long"}],
}
JSON = {
    "title": "Click",
    "type": "object",
    "properties": {"page": {"type": "string"}, "ms": {"type": "integer"}},
    "required": ["page"],
}
CLICK = {"page": "/home", "ms": 7}
WAIT_S = 60.0


@pytest.fixture
def registry(schema_registry: SchemaRegistryServer) -> SchemaRegistry:
    schema_registry.start()
    return SchemaRegistry(schema_registry.url)


def proto_file() -> descriptor_pb2.FileDescriptorProto:
    """Three messages, one of them in another one."""
    file = descriptor_pb2.FileDescriptorProto(name="click.proto", package="t", syntax="proto3")
    file.message_type.add(name="Other").field.add(name="a", number=1, type=9, label=1, json_name="a")
    click = file.message_type.add(name="Click")
    click.field.add(name="page", number=1, type=9, label=1, json_name="page")
    click.field.add(name="ms", number=2, type=3, label=1, json_name="ms")
    click.nested_type.add(name="Inner").field.add(name="x", number=1, type=5, label=1, json_name="x")
    return file


def message_class(name: str) -> type[Message]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(proto_file())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def test_avro_and_json_of_confluents_serializers_are_read(
    schema_registry: SchemaRegistryServer, registry: SchemaRegistry
) -> None:
    """The format is theirs; a decoder travels to its task with the pipeline."""
    (avro,) = schema_registry.serialized("AVRO", "avro-clicks", json.dumps(AVRO), [CLICK])
    (text,) = schema_registry.serialized("JSON", "json-clicks", json.dumps(JSON), [CLICK])
    decoders: list[tuple[Callable[[bytes | None], object], bytes]] = [
        (AvroDecoder(registry), avro),
        (JsonDecoder(registry), text),
    ]
    for decode, data in decoders:
        assert decode(data) == CLICK
        assert decode(None) is None
        copy = pickle.loads(pickle.dumps(decode))
        assert copy(data) == CLICK


@pytest.mark.parametrize(("name", "fields"), [("t.Other", {"a": "x"}), ("t.Click", CLICK), ("t.Click.Inner", {"x": 3})])
def test_protobuf_of_confluents_serializer_is_read_for_each_place_of_a_message(
    schema_registry: SchemaRegistryServer, registry: SchemaRegistry, name: str, fields: dict[str, object]
) -> None:
    """The first message of a file has a short form, and a message in another one has two numbers."""
    del registry  # which is started
    schema = proto_file().SerializeToString().hex()
    (data,) = schema_registry.serialized("PROTOBUF", name, schema, [fields], name)
    wanted = message_class(name)
    assert ProtobufDecoder(wanted)(data) == wanted(**fields)
    assert ProtobufDecoder(wanted)(None) is None
    other = "t.Click" if name == "t.Other" else "t.Other"
    with pytest.raises(ConnectorError, match=rf"message is number \[.*\] of its \.proto file, and {other} is number"):
        ProtobufDecoder(message_class(other))(data)


def test_values_of_older_and_newer_schemas_become_those_of_the_reader(
    schema_registry: SchemaRegistryServer, registry: SchemaRegistry
) -> None:
    """A topic has values of each version that its writers had."""
    newer = {**AVRO, "fields": [*AVRO["fields"], {"name": "user", "type": "string", "default": "?"}]}
    old = schema_registry.serialized("AVRO", "versions", json.dumps(AVRO), [CLICK])
    new = schema_registry.serialized("AVRO", "versions", json.dumps(newer), [{**CLICK, "user": "u"}])
    assert [AvroDecoder(registry)(each) for each in (*old, *new)] == [CLICK, {**CLICK, "user": "u"}]
    assert [AvroDecoder(registry, newer)(each) for each in (*old, *new)] == [
        {**CLICK, "user": "?"},
        {**CLICK, "user": "u"},
    ]
    assert [AvroDecoder(registry, json.dumps(AVRO))(each) for each in (*old, *new)] == [CLICK, CLICK]


def test_schemas_that_name_others_are_read_with_them(
    schema_registry: SchemaRegistryServer, registry: SchemaRegistry
) -> None:
    """References are subjects and versions, also of a reference."""
    page = {"type": "record", "name": "Page", "fields": [{"name": "path", "type": "string"}]}
    visit = {"type": "record", "name": "Visit", "fields": [{"name": "page", "type": "Page"}]}
    schema_registry.register("pages", json.dumps(page))
    first = {"name": "Page", "subject": "pages", "version": 1}
    schema_registry.register("visits", json.dumps(visit), "AVRO", first)
    session = {"type": "record", "name": "Session", "fields": [{"name": "first", "type": "Visit"}]}
    second = {"name": "Visit", "subject": "visits", "version": 1}
    number = schema_registry.register("sessions", json.dumps(session), "AVRO", second, first)
    data = b"\0" + number.to_bytes(4, "big") + b"\x04/a"
    assert AvroDecoder(registry)(data) == {"first": {"page": {"path": "/a"}}}
    draft = {"$schema": "http://json-schema.org/draft-07/schema#"}
    schema_registry.register("lengths", json.dumps({**draft, "title": "Length", "type": "integer"}), "JSON")
    sizes = {**draft, "title": "Sizes", "type": "array", "items": {"$ref": "length.json"}}
    length = {"name": "length.json", "subject": "lengths", "version": 1}
    number = schema_registry.register("sizes", json.dumps(sizes), "JSON", length)
    head = b"\0" + number.to_bytes(4, "big")
    assert JsonDecoder(registry)(head + b"[1, 2]") == [1, 2]
    with pytest.raises(ConnectorError, match=rf"JSON schema id {number}: \$\[1\]: 'x' is not of type 'integer'"):
        JsonDecoder(registry)(head + b'[1, "x"]')


def test_what_cannot_be_decoded_says_why(schema_registry: SchemaRegistryServer, registry: SchemaRegistry) -> None:
    """Each of these is a poison record: its author sees what it is, and the rule of the step decides the rest."""
    (avro,) = schema_registry.serialized("AVRO", "poison-avro", json.dumps(AVRO), [CLICK])
    (text,) = schema_registry.serialized("JSON", "poison-json", json.dumps(JSON), [CLICK])
    decode, parse, read = AvroDecoder(registry), JsonDecoder(registry), ProtobufDecoder(message_class("t.Click"))
    cases: list[tuple[Callable[[bytes], object], bytes, str]] = [
        (decode, b"", "0 bytes that begin with nothing are not in the wire format of a schema registry"),
        (parse, b"plain text", "10 bytes that begin with 70 6c 61 69 6e are not in the wire format"),
        (decode, b"\0" + (999_999).to_bytes(4, "big") + b"x", "schema id 999999: 404 "),
        (decode, avro[:-1], "bytes are not a value of Avro schema id"),
        (decode, avro + b"x", "1 bytes are left behind it"),
        (decode, text, "is of the kind JSON, not AVRO"),
        (parse, avro, "is of the kind AVRO, not JSON"),
        (parse, text[:-1], "bytes are not JSON"),
        (parse, text[:5] + b'{"ms": 7}', r"JSON schema id \d+: \$: 'page' is a required property"),
        (read, b"\0\0\0\0\1", "do not say which message of the .proto file follows"),
        (read, b"\0\0\0\0\1\2\2\x0a\xff", "bytes are not a t.Click"),
    ]
    for function, data, message in cases:
        with pytest.raises(ConnectorError, match=message):
            function(data)


GOOD = json.dumps({"schemaType": "JSON", "schema": "true"}).encode()


def answer(status: int, body: bytes, length: int | None = None, *headers: str) -> bytes:
    """The bytes of an answer; `length` is what its header says."""
    lines = [f"HTTP/1.0 {status} x", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


class ScriptedServer(HTTPServer):
    """Gives each of the answers once, and then the right one."""

    def __init__(self, answers: Sequence[bytes] = (), port: int = 0) -> None:
        self.answers = list(answers)
        self.passwords: list[str | None] = []
        super().__init__(("127.0.0.1", port), Scripted)
        self.url = f"http://127.0.0.1:{self.server_port}"


class Scripted(BaseHTTPRequestHandler):
    """Takes the next answer of its server."""

    def do_GET(self) -> None:  # the name of the base class
        server = self.server
        assert isinstance(server, ScriptedServer)
        server.passwords.append(self.headers.get("Authorization"))
        self.wfile.write(server.answers.pop(0) if server.answers else answer(200, GOOD))

    def log_message(self, *arguments: object) -> None:
        """Tests print nothing."""


@contextlib.contextmanager
def serving(server: ScriptedServer) -> Iterator[ScriptedServer]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join(WAIT_S)
        server.server_close()


VALUE = b"\0\0\0\0\1[3]"


def test_decoding_waits_for_a_registry_that_is_away() -> None:
    """A registry that is restarted must not turn good records into dead letters."""
    port = free_port()
    found: list[object] = []
    decode = JsonDecoder(SchemaRegistry(f"http://127.0.0.1:{port}"))
    waiting = threading.Thread(target=lambda: found.append(decode(VALUE)))
    waiting.start()
    with serving(ScriptedServer([answer(503, b"")], port)) as server:
        waiting.join(WAIT_S)
    assert found == [[3]]
    assert len(server.passwords) == 2


@pytest.mark.parametrize(
    ("first", "level", "message"),
    [
        (answer(200, GOOD[:9], len(GOOD)), None, ""),  # cut by a restart
        (b"no status line\r\n\r\n", None, ""),
        (b"", None, ""),
        (answer(401, b'{"error_code": 401, "message": "Unauthorized"}'), "ERROR", "401 Unauthorized; correct what"),
        (answer(403, b"no JSON"), "ERROR", "403 x; correct what `login` returns, or the rights of this user"),
        (answer(200, b"<html>"), None, ""),
        (answer(200, b"{}"), "ERROR", r"the answer is not that of a registry: KeyError\('schema'\)"),
        (answer(200, b"[]"), "ERROR", "the answer is not that of a registry: TypeError"),
    ],
)
def test_trouble_of_the_registry_is_no_fault_of_a_record(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, first: bytes, level: str | None, message: str
) -> None:
    """A rotated password would turn the whole topic into dead letters. People see in the log what they have to do."""
    monkeypatch.setattr(schema_registry_module, "_PAUSE_S", 0.0)
    with serving(ScriptedServer([first])) as server:
        assert JsonDecoder(SchemaRegistry(server.url))(VALUE) == [3]
    assert len(server.passwords) == 2
    assert [each.levelname for each in caplog.records] == ([level] if level else [])
    assert re.search(message, caplog.text)


def test_login_that_fails_is_named_and_called_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A variable that a task does not have is no fault of a record either."""
    monkeypatch.setattr(schema_registry_module, "_PAUSE_S", 0.0)
    given = [{}, {"REGISTRY_PASSWORD": "new"}]

    def login() -> tuple[str, str]:
        return "user", given.pop(0)["REGISTRY_PASSWORD"]

    with serving(ScriptedServer()) as server:
        assert JsonDecoder(SchemaRegistry(server.url, login))(VALUE) == [3]
    assert "`login` raised KeyError('REGISTRY_PASSWORD'); decoding waits for schema id 1" in caplog.text
    assert server.passwords == ["Basic " + base64.b64encode(b"user:new").decode()]


def test_password_is_not_sent_to_the_host_of_a_redirect() -> None:
    """The registry, or someone in between, names that host."""
    with serving(ScriptedServer()) as other:
        redirect = answer(302, b"", None, f"Location: http://localhost:{other.server_port}/schemas/ids/1")
        with serving(ScriptedServer([redirect])) as server:
            assert JsonDecoder(SchemaRegistry(server.url, lambda: ("user", "secret")))(VALUE) == [3]
    assert server.passwords == ["Basic " + base64.b64encode(b"user:secret").decode()]
    assert other.passwords == [None]


def test_untrusted_certificate_and_lost_file_need_the_help_of_people(tmp_path: Path) -> None:
    """Decoding waits, and says at once what is missing."""
    untrusted = ssl.SSLCertVerificationError("refused")
    untrusted.verify_message = "self-signed certificate"
    wanted = (logging.ERROR, "self-signed certificate; give its authority as `ca_file`")
    assert schema_registry_module._hindrance(urllib.error.URLError(untrusted)) == wanted
    authorities = tmp_path / "authorities.pem"
    authorities.write_text("")
    with pytest.raises(UsageError, match=r"authorities\.pem' is not a file of certificates: "):
        SchemaRegistry("https://registry:8081", ca_file=str(authorities))
    with pytest.raises(UsageError, match=r"ca_file='/nonexistent\.pem' is not a file of certificates: .*No such file"):
        SchemaRegistry("https://registry:8081", ca_file="/nonexistent.pem")


@pytest.mark.parametrize("url", ["registry:8081", "ftp://registry", "http://user:secret@registry:8081"])
def test_wrong_address_is_refused_where_it_is_made(url: str) -> None:
    """The author sees the line; a password in it is not repeated."""
    with pytest.raises(UsageError, match="SchemaRegistry: ") as caught:
        SchemaRegistry(url)
    assert "secret" not in str(caught.value)
