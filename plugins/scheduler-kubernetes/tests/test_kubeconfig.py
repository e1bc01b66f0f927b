"""Credentials come from where `kubectl` looks: files, plugins and the service account of a Pod."""

from __future__ import annotations

import base64
import ssl
import stat
from pathlib import Path

import pytest
import trustme
import yaml

from heron.errors import SchedulerError
from heron_scheduler_kubernetes.kubeconfig import find_access

AUTHORITY = trustme.CA()


@pytest.fixture(autouse=True)
def _no_cluster_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for each in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(each, raising=False)


def _config(path: Path, user: dict[str, object], name: str = "one", **cluster: object) -> Path:
    authority = base64.b64encode(AUTHORITY.cert_pem.bytes()).decode()
    document = {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443/", **cluster}}],
        "users": [{"name": name, "user": user}],
    }
    if "certificate-authority" not in cluster:
        document["clusters"][0]["cluster"]["certificate-authority-data"] = authority  # type: ignore[index]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


def test_the_default_file_is_that_of_kubectl(tmp_path: Path) -> None:
    """A profile without addresses uses the cluster that `kubectl` uses."""
    _config(tmp_path / ".kube" / "config", {"token": "t0ken"})
    access = find_access()
    assert (access.server, access.namespace, access.token) == ("https://one:6443", "ns-one", "t0ken")
    assert access.tls.verify_mode is ssl.CERT_REQUIRED
    assert access.tls.check_hostname


def test_several_files_are_merged_and_a_context_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KUBECONFIG may list files; the first one has the current context."""
    first = _config(tmp_path / "a", {"token": "a"}, "one")
    second = _config(tmp_path / "b", {"tokenFile": "secret"}, "two")
    (tmp_path / "secret").write_text("from-file\n")
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'absent'}:{second}")
    assert find_access().server == "https://one:6443"
    assert find_access("", "two").token == "from-file"
    with pytest.raises(SchedulerError, match=r"context 'three' of .*does not exist; there are 'one', 'two'"):
        find_access("", "three")


def test_a_client_certificate_is_used_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key must not stay on the disk."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    pair = AUTHORITY.issue_cert("ann@example.org")
    certificate, key = pair.cert_chain_pems[0].bytes(), pair.private_key_pem.bytes()
    data = {"client-certificate-data": base64.b64encode(certificate).decode()}
    (tmp_path / "key.pem").write_bytes(key)
    path = _config(tmp_path / "c", {**data, "client-key": "key.pem"})
    assert find_access(str(path)).token == ""
    assert list(scratch.iterdir()) == []
    path = _config(tmp_path / "c", {**data, "client-key-data": base64.b64encode(b"no key").decode()})
    with pytest.raises(SchedulerError, match="its certificates cannot be used"):
        find_access(str(path))


def test_a_credential_plugin_is_asked_and_its_failure_is_told(tmp_path: Path) -> None:
    """Managed clusters give short-lived tokens by such plugins."""
    plugin = tmp_path / "plugin"
    plugin.write_text(
        '#!/bin/sh\n[ "$1" = ok ] || { echo log in first >&2; exit 1; }\n'
        'echo "{\\"status\\": {\\"token\\": \\"$WHO\\"}}"\n'
    )
    plugin.chmod(stat.S_IRWXU)
    run = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./plugin",
        "env": [{"name": "WHO", "value": "ann"}],
    }
    assert find_access(str(_config(tmp_path / "c", {"exec": {**run, "args": ["ok"]}}))).token == "ann"
    with pytest.raises(SchedulerError, match=r"its credential plugin '\./plugin' fails: log in first; log in"):
        find_access(str(_config(tmp_path / "c", {"exec": run})))


def test_a_pod_uses_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that runs in the cluster, such as the health manager, needs no file."""
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("pod-token\n")
    (account / "namespace").write_text("prod")
    AUTHORITY.cert_pem.write_to_path(account / "ca.crt")
    with pytest.raises(SchedulerError, match=r"no kubeconfig: .*\.kube/config does not exist"):
        find_access(in_pod=account)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    access = find_access(in_pod=account)
    assert (access.server, access.namespace, access.token) == ("https://[fd00::1]:443", "prod", "pod-token")


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "cannot be read: ParserError"), ("[]", "context '' of .*does not exist"), ("current-context: x", "'x'")],
)
def test_a_broken_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    """The message shows nothing of the content, which has credentials."""
    path = tmp_path / "broken"
    path.write_text(text)
    with pytest.raises(SchedulerError, match=message):
        find_access(str(path))


def test_a_user_with_a_password_is_refused(tmp_path: Path) -> None:
    """Silence would end in a refusal of the server that names no reason."""
    path = _config(tmp_path / "c", {"username": "ann", "password": "s3cret"})
    with pytest.raises(SchedulerError, match="its user has username, which this scheduler does not support") as caught:
        find_access(str(path))
    assert "s3cret" not in str(caught.value)
