"""A repository of a real registry, and a package."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from registry_front import Front, serving

from heron_testing_servers.oci_registry import OciRegistry
from heron_uploader_oci.oci_options import OciOptions, tls_context
from heron_uploader_oci.registry import Registry


@pytest.fixture
def front(oci_registry: OciRegistry) -> Front:
    return Front(oci_registry.address)


@pytest.fixture
def options(front: Front) -> Iterator[dict[str, object]]:
    """A repository for each test, behind `front`."""
    with serving(front.handler) as host:
        yield {
            "repository": f"{host}/tests/{secrets.token_hex(8)}",
            "username": OciRegistry.user,
            "password": OciRegistry.password,
            "plain_http": True,
        }


@pytest.fixture
def registry(options: dict[str, object]) -> Iterator[Registry]:
    """The repository, without the driver."""
    with Registry(OciOptions(**options), tls_context("")) as found:  # type: ignore[arg-type]
        yield found


@pytest.fixture
def package(tmp_path: Path) -> Path:
    path = tmp_path / "package"
    path.write_bytes(b"package" * 100)
    return path
