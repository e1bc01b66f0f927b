"""How to reach the masters of a profile: URLs, credentials and certificates."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

from heron.errors import SchedulerError
from heron_scheduler_mesos.options import MesosOptions

__all__ = ["MesosAccess", "find_access", "leader"]

_ANSWER_S = 4.0
_CONNECT_S = 1.0  # a master that is dead leaves time for the next one


@dataclass(frozen=True, slots=True)
class MesosAccess:
    """URLs without a path, and what to send there."""

    masters: tuple[str, ...]
    auth: httpx.BasicAuth | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None

    def client(self, silence_s: float = _ANSWER_S) -> httpx.Client:
        """Return a client that waits so long for each part of an answer."""
        timeout = httpx.Timeout(_ANSWER_S, read=silence_s, connect=_CONNECT_S)
        return httpx.Client(auth=self.auth, verify=self.tls or True, timeout=timeout, trust_env=False)


def find_access(options: MesosOptions) -> MesosAccess:
    """Return the access of a profile. Raises SchedulerError when a URL or a certificate cannot be used."""
    masters = tuple(each.rstrip("/") for each in options.masters)
    for each in masters:
        parts = urlsplit(each)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path or "@" in parts.netloc:
            use = "use http://HOST:5050 or https://HOST:5050"
            msg = f"scheduler.masters: {parts.scheme}://{parts.hostname}{parts.path} is not the URL of a master; {use}"
            raise SchedulerError(msg)
    auth = httpx.BasicAuth(options.principal, options.secret) if options.principal else None
    try:
        tls = ssl.create_default_context(cafile=options.ca_file or None)
    except OSError as error:  # SSLError is one
        msg = f"scheduler.ca_file: {options.ca_file} cannot be used: {error}; it must have certificates in PEM"
        raise SchedulerError(msg) from error
    return MesosAccess(masters, auth, tls)


def leader(asked: str, location: str) -> str:
    """Return the URL of the leading master that another master names; Mesos leaves out the scheme, or all slashes."""
    parts = urlsplit(location if "//" in location else f"//{location}")
    return f"{urlsplit(asked).scheme}://{parts.netloc}"
