"""The contract of uploaders on a real registry."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from heron_testing.contracts.uploader import UploaderContract
from heron_testing.faults import Faults, relay_faults
from heron_testing.relay import Relay
from heron_testing_servers.oci_registry import OciRegistry
from heron_uploader_oci import OciUploader
from heron_uploader_oci.artifact import decode_manifest
from heron_uploader_oci.registry import Registry


@pytest.fixture
def relay(oci_registry: OciRegistry) -> Iterator[Relay]:
    """Connects the driver to the registry, and can cut the connections."""
    relay = Relay(oci_registry.address)
    yield relay
    relay.close()


@pytest.fixture
def options(relay: Relay) -> dict[str, object]:
    """A repository for each test."""
    host, port = relay.address
    return {
        "repository": f"{host}:{port}/tests/{secrets.token_hex(8)}",
        "username": OciRegistry.user,
        "password": OciRegistry.password,
        "plain_http": True,
    }


def layers_of(registry: Registry, uri: str) -> list[str]:
    """The digests of the layers, 64 hexadecimal digits each."""
    stored = registry.manifest(uri.rpartition("/")[2])
    manifest = decode_manifest(stored.data) if stored else None
    assert manifest is not None
    return [each.digest.removeprefix("sha256:") for each in manifest.layers]


class TestContract(UploaderContract):
    name = "oci"
    driver_class = OciUploader

    @pytest.fixture(autouse=True)
    def storage(self, oci_registry: OciRegistry, registry: Registry) -> Iterator[None]:
        """The registry has equal blobs of all repositories once, so each test restores what it has damaged."""
        self.server, self.registry = oci_registry, registry
        self.damaged: dict[Path, bytes] = {}
        yield
        for path, content in self.damaged.items():
            path.write_bytes(content)

    @pytest.fixture
    def options(self, options: dict[str, object]) -> dict[str, object]:
        return options

    @pytest.fixture
    def faults(self, relay: Relay) -> Faults:
        return relay_faults(relay)

    def damage(self, uri: str) -> None:
        """Change one byte on the disk of the registry; its interface cannot do that."""
        path = self.server.blob_file(layers_of(self.registry, uri)[-1])
        content = self.damaged[path] = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
