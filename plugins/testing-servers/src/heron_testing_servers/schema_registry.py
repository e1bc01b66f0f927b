"""A schema registry with Confluent's API, Apicurio with its schemas in memory; and Confluent's own serializers."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing_servers.install import ServerNotInstalledError, installed, maven_archive, python_packages
from heron_testing_servers.server_process import ServerProcess, answers

__all__ = ["FIXTURES", "SchemaRegistryServer"]

FIXTURES = ("schema_registry",)

_VERSION = "2.6.13.Final"  # the last one that runs on Java 17
_ARTIFACT = f"io.apicurio:apicurio-registry-app:{_VERSION}:tar.gz:all"
_JAVA = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
_READY_S = 240.0  # it takes 3 s on an idle machine, and 230 s were seen on a busy one

_SERIALIZERS = "2.16.1"
_SERIALIZE = """\
import json, sys
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.serialization import MessageField, SerializationContext

asked = json.load(sys.stdin)
registry = SchemaRegistryClient({"url": asked["url"]})
where = SerializationContext(asked["topic"], MessageField.VALUE)
values = asked["values"]
if asked["kind"] == "AVRO":
    from confluent_kafka.schema_registry.avro import AvroSerializer
    serialize = AvroSerializer(registry, asked["schema"])
elif asked["kind"] == "JSON":
    from confluent_kafka.schema_registry.json_schema import JSONSerializer
    serialize = JSONSerializer(asked["schema"], registry)
else:
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from google.protobuf import descriptor_pool, message_factory
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(bytes.fromhex(asked["schema"]))
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName(asked["message"]))
    serialize = ProtobufSerializer(message, registry, {"use.deprecated.format": False})
    values = [message(**each) for each in values]
print(json.dumps([serialize(each, where).hex() for each in values]))
"""


class SchemaRegistryServer(ServerProcess):
    """One server. It forgets its schemas when it ends."""

    def __init__(self, folder: Path) -> None:
        """Install it from Maven into the cache, 142 MB; needs the ``java`` on the PATH.

        Raises:
            ServerNotInstalledError: when either is not available.
        """
        java = shutil.which("java")
        if java is None:
            msg = "there is no `java` on the PATH; install a JRE of 17 or newer"
            raise ServerNotInstalledError(msg)
        place = installed(f"apicurio-registry-{_VERSION}", maven_archive(_ARTIFACT))
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        """The address for clients of Confluent's API."""
        options = ["-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}"]
        program = str(place / f"apicurio-registry-app-{_VERSION}-runner.jar")
        command = [java, *_JAVA, *options, "-jar", program]
        super().__init__(command, folder / "registry.log", lambda: answers(f"{self.url}/subjects"), _READY_S)

    def register(self, subject: str, schema: str, kind: str = "AVRO", *references: dict[str, object]) -> int:
        """Add a version to a subject, without the code under test; returns the id of the schema."""
        body = json.dumps({"schema": schema, "schemaType": kind, "references": references}).encode()
        request = urllib.request.Request(  # noqa: S310  # of this server
            f"{self.url}/subjects/{subject}/versions",
            body,
            {"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(request, timeout=_READY_S) as response:  # noqa: S310  # as above
            number: int = json.loads(response.read())["id"]
            return number

    def serialized(
        self, kind: str, topic: str, schema: str, values: Sequence[Mapping[str, object]], message: str = ""
    ) -> list[bytes]:
        """What Confluent's serializer makes of values; it registers the schema for the topic.

        `kind` is ``AVRO``, ``JSON`` or ``PROTOBUF``. A schema of Protobuf is a file descriptor in hexadecimal digits;
        `message` is the full name of a message in it.

        Raises:
            ServerNotInstalledError: when Confluent's package cannot be installed from PyPI.
        """
        package = f"confluent-kafka[avro,json,protobuf,schemaregistry]=={_SERIALIZERS}"
        place = installed(f"confluent-serializers-{_SERIALIZERS}", python_packages(package))
        asked = {"url": self.url, "kind": kind, "topic": topic, "schema": schema, "values": values, "message": message}
        command = [str(place / "bin" / "python"), "-c", _SERIALIZE]
        ran = subprocess.run(
            command, input=json.dumps(asked), capture_output=True, text=True, timeout=_READY_S, check=False
        )
        assert ran.returncode == 0, ran.stderr
        return [bytes.fromhex(each) for each in json.loads(ran.stdout)]
