"""Credentials come from where Nomad's own tools look."""

from __future__ import annotations

import ssl

import pytest

from heron.errors import SchedulerError
from heron_scheduler_nomad.nomad_access import find_access
from heron_scheduler_nomad.options import NomadOptions


def test_the_environment_fills_what_the_profile_leaves_empty() -> None:
    """A person who can use `nomad` needs no further setting."""
    environment = {"NOMAD_ADDR": "https://nomad:4646/", "NOMAD_TOKEN": "secret-1", "NOMAD_NAMESPACE": "data"}
    access = find_access(NomadOptions(), environment)
    assert (access.address, access.token, access.namespace) == ("https://nomad:4646", "secret-1", "data")
    chosen = find_access(NomadOptions(address="http://other:1", token="secret-2", namespace="own"), environment)
    assert (chosen.address, chosen.token, chosen.namespace) == ("http://other:1", "secret-2", "own")
    assert find_access(NomadOptions(), {}).address == "http://127.0.0.1:4646"
    assert "secret" not in repr(access)


def test_tls_checks_the_server_unless_it_is_told_not_to() -> None:
    """`NOMAD_SKIP_VERIFY` is for tests."""
    secure = find_access(NomadOptions(address="https://nomad"), {}).tls
    assert secure is not None
    assert secure.verify_mode is ssl.CERT_REQUIRED
    open_ = find_access(NomadOptions(address="https://nomad"), {"NOMAD_SKIP_VERIFY": "true"}).tls
    assert open_ is not None
    assert open_.verify_mode is ssl.CERT_NONE
    with pytest.raises(SchedulerError, match="NOMAD_CACERT"):
        find_access(NomadOptions(address="https://nomad"), {"NOMAD_CACERT": "/none.pem"})


def test_a_socket_is_an_address() -> None:
    """`NOMAD_ADDR` in a task of Nomad is the socket of its agent."""
    access = find_access(NomadOptions(), {"NOMAD_ADDR": "unix:///secrets/api.sock"})
    assert access.socket == "/secrets/api.sock"


@pytest.mark.parametrize("address", ["nomad:4646", "ftp://nomad", "https://ann:hidden@nomad"])
def test_a_wrong_address_is_refused_without_its_password(address: str) -> None:
    """The message has the variable, and not what else is in it."""
    with pytest.raises(SchedulerError, match="NOMAD_ADDR") as caught:
        find_access(NomadOptions(), {"NOMAD_ADDR": address})
    assert "hidden" not in str(caught.value)
