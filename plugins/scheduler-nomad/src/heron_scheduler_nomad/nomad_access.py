"""Finds the servers of Nomad and the user's token where Nomad's own tools look: in ``NOMAD_…`` variables."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from heron.errors import SchedulerError
from heron_scheduler_nomad.options import NomadOptions

__all__ = ["NomadAccess", "find_access"]

_DEFAULT = "http://127.0.0.1:4646"
_FALSE = frozenset({"", "0", "f", "false"})


@dataclass(frozen=True, slots=True)
class NomadAccess:
    """An address (``http``, ``https`` or ``unix``), and how to sign in there.

    The fields `…_from` are the keys or variables that a person corrects when Nomad refuses.
    """

    address: str
    token: str = field(default="", repr=False)
    namespace: str = "default"
    region: str = ""
    tls: ssl.SSLContext | None = None
    address_from: str = "NOMAD_ADDR"
    token_from: str = "NOMAD_TOKEN"  # noqa: S105 - the name of the variable

    @property
    def socket(self) -> str:
        """The path of the unix socket; "" for TCP."""
        return self.address.removeprefix("unix://") if self.address.startswith("unix://") else ""


def find_access(options: NomadOptions, environment: Mapping[str, str]) -> NomadAccess:
    """Return the access of a profile; the environment fills what the profile leaves empty.

    Raises:
        SchedulerError: when the address or a certificate cannot be used.
    """
    address = (options.address or environment.get("NOMAD_ADDR") or _DEFAULT).rstrip("/")
    origin = "scheduler.address" if options.address else "NOMAD_ADDR"
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https", "unix"} or "@" in parts.netloc or not _has_port(parts):
        msg = f"{origin}: {parts.scheme}://{parts.hostname} is not an address of Nomad; use https://HOST:4646"
        raise SchedulerError(msg)
    token, token_from = options.token or environment.get("NOMAD_TOKEN", ""), "NOMAD_TOKEN"
    if options.token:
        token_from = "scheduler.token"  # noqa: S105 - the key of the profile
    if not (token.isascii() and token.isprintable()):
        msg = f"{token_from}: is not the secret of a token of Nomad: it has characters outside of ASCII, or line ends"
        raise SchedulerError(msg)
    return NomadAccess(
        address,
        token,
        options.namespace or environment.get("NOMAD_NAMESPACE") or "default",
        options.region or environment.get("NOMAD_REGION", ""),
        _tls(environment) if parts.scheme == "https" else None,
        origin,
        token_from,
    )


def _has_port(parts: SplitResult) -> bool:
    """Return whether the port is a number that exists, or is left to the scheme."""
    try:
        return parts.port != 0
    except ValueError:
        return False


def _tls(environment: Mapping[str, str]) -> ssl.SSLContext:
    certificate, key = environment.get("NOMAD_CLIENT_CERT"), environment.get("NOMAD_CLIENT_KEY")
    try:
        context = ssl.create_default_context(
            cafile=environment.get("NOMAD_CACERT") or None, capath=environment.get("NOMAD_CAPATH") or None
        )
        if environment.get("NOMAD_SKIP_VERIFY", "").lower() not in _FALSE:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate:
            context.load_cert_chain(certificate, key)
    except OSError as error:  # SSLError is one
        names = "NOMAD_CACERT, NOMAD_CAPATH, NOMAD_CLIENT_CERT, NOMAD_CLIENT_KEY"
        msg = f"the certificates of Nomad cannot be used: {error}; check {names}"
        raise SchedulerError(msg) from error
    return context
