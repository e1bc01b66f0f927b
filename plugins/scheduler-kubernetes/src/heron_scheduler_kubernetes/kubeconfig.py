"""Where the API server is, and how to authenticate: from a kubeconfig as `kubectl` reads it, or from inside a Pod."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from heron.driver_kit.private_files import write_private
from heron.errors import SchedulerError, known
from heron_scheduler_kit.managed.rest_api import Json, fields, items

__all__ = ["ApiAccess", "find_access"]

_IN_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_EXEC_S = 20.0
_UNSUPPORTED = ("auth-provider", "username", "password", "as", "as-groups")


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """One cluster and one user. `origin` names the file and context for messages; `token` is "" with a certificate."""

    server: str
    namespace: str
    tls: ssl.SSLContext
    origin: str
    token: str = ""
    proxy: str | None = None


def find_access(kubeconfig: str = "", context: str = "", in_pod: Path = _IN_POD) -> ApiAccess:
    """Return the access of `kubectl`: the given file, else KUBECONFIG, else ``~/.kube/config``, else that of a Pod.

    Raises:
        SchedulerError: when there is none, or it is incomplete; names the file and the remedy.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG", "")
    paths = [Path(each).expanduser() for each in named.split(os.pathsep) if each] or [
        Path("~/.kube/config").expanduser()
    ]
    files = [each for each in paths if each.exists()]
    if files:
        return _from_files(files, context)
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    if named or context or not host or not (in_pod / "token").exists():
        msg = (
            f"no kubeconfig: {', '.join(map(str, paths))} does not exist, and this process has no service account of a "
            "Pod; set KUBECONFIG or scheduler.kubeconfig"
        )
        raise SchedulerError(msg)
    address = f"[{host}]" if ":" in host else host
    return ApiAccess(
        f"https://{address}:{os.environ.get('KUBERNETES_SERVICE_PORT', '443')}",
        (in_pod / "namespace").read_text().strip(),
        ssl.create_default_context(cafile=str(in_pod / "ca.crt")),
        f"the service account in {in_pod}",
        (in_pod / "token").read_text().strip(),
    )


def _from_files(files: list[Path], chosen: str) -> ApiAccess:
    """Merge the files as `kubectl` does: of entries with one name, the first one counts."""
    named: dict[str, dict[str, tuple[Path, Json]]] = {"contexts": {}, "clusters": {}, "users": {}}
    current = ""
    for path in files:
        document = _read(path)
        current = current or str(document.get("current-context") or "")
        for kind, entries in named.items():
            for entry in items(document.get(kind)):
                entries.setdefault(str(entry.get("name")), (path, fields(entry.get(kind.removesuffix("s")))))
    name = chosen or current
    origin = f"context {name!r} of {', '.join(map(str, files))}"
    if name not in named["contexts"]:
        remedy = "set scheduler.context, or run `kubectl config use-context NAME`"
        msg = f"{origin}: does not exist; there are {known(named['contexts'])}; {remedy}"
        raise SchedulerError(msg)
    context = named["contexts"][name][1]
    place, cluster = named["clusters"].get(str(context.get("cluster")), (files[0], {}))
    user_place, user = named["users"].get(str(context.get("user")), (files[0], {}))
    if not cluster.get("server"):
        msg = (
            f"{origin}: its cluster {context.get('cluster')!r} has no server; mend it with `kubectl config set-cluster`"
        )
        raise SchedulerError(msg)
    if found := [each for each in _UNSUPPORTED if user.get(each)]:
        remedy = "use a token, a certificate or exec"
        msg = f"{origin}: its user has {found[0]}, which this scheduler does not support; {remedy}"
        raise SchedulerError(msg)
    token, certificate, key = _credentials(user, user_place, origin)
    return ApiAccess(
        str(cluster["server"]).rstrip("/"),
        str(context.get("namespace") or "default"),
        _tls(cluster, place, certificate, key, origin),
        origin,
        token,
        str(cluster["proxy-url"]) if cluster.get("proxy-url") else None,
    )


def _credentials(user: Json, place: Path, origin: str) -> tuple[str, bytes, bytes]:
    """Return the token, the certificate and the key of a user; each may be empty."""
    if user.get("exec"):
        return _run_plugin(fields(user["exec"]), place, origin)
    token = str(user.get("token") or "")
    if user.get("tokenFile"):
        token = (place.parent / str(user["tokenFile"])).read_text().strip()
    certificate = _data(user, "client-certificate", place)
    return token, certificate, _data(user, "client-key", place)


def _run_plugin(plugin: Json, place: Path, origin: str) -> tuple[str, bytes, bytes]:
    """Ask a credential plugin of client-go, such as those of managed clusters."""
    version = str(plugin.get("apiVersion") or "client.authentication.k8s.io/v1")
    asked = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    extra = {str(each["name"]): str(each["value"]) for each in items(plugin.get("env"))}
    name = str(plugin.get("command"))
    command = str(place.parent / name) if "/" in name else name
    arguments = plugin.get("args")
    words = [command, *map(str, arguments if isinstance(arguments, list) else [])]
    environment = {**os.environ, **extra, "KUBERNETES_EXEC_INFO": json.dumps(asked)}
    try:
        done = subprocess.run(words, env=environment, capture_output=True, timeout=_EXEC_S, check=True)
        status = fields(json.loads(done.stdout)["status"])
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"exit code {error.returncode}"]
        msg = f"{origin}: its credential plugin {name!r} fails: {said[0]:.300}; log in with it, and try again"
        raise SchedulerError(msg) from error
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
        msg = f"{origin}: its credential plugin {name!r} gives no credentials: {type(error).__name__}; run it by hand"
        raise SchedulerError(msg) from error
    certificate, key = str(status.get("clientCertificateData") or ""), str(status.get("clientKeyData") or "")
    return str(status.get("token") or ""), certificate.encode(), key.encode()


def _tls(cluster: Json, place: Path, certificate: bytes, key: bytes, origin: str) -> ssl.SSLContext:
    try:
        authority = _data(cluster, "certificate-authority", place).decode()
        context = ssl.create_default_context(cadata=authority or None)
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate:
            with tempfile.TemporaryDirectory() as folder:  # with mode 0700; `ssl` reads files only
                path = Path(folder, "pair.pem")
                write_private(path, certificate + b"\n" + key)
                context.load_cert_chain(path)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        msg = f"{origin}: its certificates cannot be used: {error}"
        raise SchedulerError(msg) from error
    return context


def _data(fields: Json, key: str, place: Path) -> bytes:
    """Return the content of a field that is base64 (``KEY-data``) or the path of a file."""
    if fields.get(f"{key}-data"):
        return base64.b64decode(str(fields[f"{key}-data"]))
    return (place.parent / str(fields[key])).read_bytes() if fields.get(key) else b""


def _read(path: Path) -> Json:
    try:
        return fields(yaml.safe_load(path.read_bytes()))
    except (OSError, yaml.YAMLError) as error:
        msg = f"kubeconfig {path} cannot be read: {type(error).__name__}; check it with `kubectl config view`"
        raise SchedulerError(msg) from error
