"""Apache Kafka on the loopback address: one server that is broker and controller."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from heron_testing.ports import free_port
from heron_testing_servers.install import ServerNotInstalledError, installed, maven_jars
from heron_testing_servers.server_process import ServerProcess

__all__ = ["FIXTURES", "KafkaServer"]

FIXTURES = ("kafka",)

_VERSION = "4.1.1"
_ARTIFACT = f"org.apache.kafka:kafka_2.13:{_VERSION}"
_JAVA = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
_CLUSTER = "AAAAAAAAQACAAAAAAAAAAQ"
_PROBE_S = 2.0

# The sessions of brokers are short, so a killed server answers again after 6 s instead of 16 s.
_CONFIG = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl},SASL_SSL://127.0.0.1:{tls},CONTROLLER://127.0.0.1:{control}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl},SASL_SSL://127.0.0.1:{tls}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_ssl.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PEM
ssl.keystore.location={folder}/keystore.pem
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  user_{user}="{password}";
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
log.cleaner.backoff.ms=200
log.retention.check.interval.ms=500
log.segment.delete.delay.ms=100
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
"""


class KafkaServer(ServerProcess):
    """One server; keeps its data in `folder`, so records survive a kill. Topics must be created."""

    user = "heron"
    password = "to-be-tested"  # for a server on the loopback address that ends with the tests

    def __init__(self, folder: Path) -> None:
        """Install the libraries from Maven into the cache; needs the ``java`` on the PATH.

        Raises:
            ServerNotInstalledError: when either is not available, or when the data folder cannot be made.
        """
        java = shutil.which("java")
        if java is None:
            msg = "there is no `java` on the PATH; install a JRE of 17 or newer"
            raise ServerNotInstalledError(msg)
        libraries = installed(f"kafka-{_VERSION}", maven_jars(_ARTIFACT)) / "lib"
        port, sasl, tls = free_port(), free_port(), free_port()
        self.address = f"127.0.0.1:{port}"
        """``host:port`` for clients."""
        self.sasl_address = f"127.0.0.1:{sasl}"
        """The same for clients that say `user` and `password` (SASL_PLAINTEXT, PLAIN)."""
        self.tls_address = f"127.0.0.1:{tls}"
        """The same over TLS (SASL_SSL, SCRAM-SHA-512)."""
        folder.mkdir(parents=True, exist_ok=True)
        self.ca_file = str(_certificate(folder))
        """The certificate of the server, which no authority has signed."""
        config = folder / "server.properties"
        ports = {"port": port, "sasl": sasl, "tls": tls, "control": free_port()}
        config.write_text(_CONFIG.format(**ports, user=self.user, password=self.password, folder=folder))
        begin = [java, *_JAVA, "-cp", f"{libraries}/*"]
        scram = f"SCRAM-SHA-512=[name={self.user},password={self.password}]"
        made = subprocess.run(
            [*begin, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(config), "--add-scram", scram],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            msg = f"Kafka's data folder cannot be made: {made.stderr.strip() or made.stdout.strip()}"
            raise ServerNotInstalledError(msg)
        super().__init__([*begin, "kafka.Kafka", str(config)], folder / "kafka.log", self._up)

    def _up(self) -> bool:
        # Tests of other plugins load this module too, in environments without the client.
        from confluent_kafka import KafkaException  # noqa: PLC0415  # as above
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415  # as above

        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        try:
            return bool(admin.list_topics(timeout=_PROBE_S).brokers)
        except KafkaException:
            return False


def _certificate(folder: Path) -> Path:
    """Make key and certificate of a server at 127.0.0.1; returns the file of the certificate."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    try:
        subprocess.run([*command, *names], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        msg = f"openssl does not make a certificate: {error}"
        raise ServerNotInstalledError(msg) from error
    (folder / "keystore.pem").write_text(key.read_text() + certificate.read_text())
    return certificate
