"""The driver's section of a profile."""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from heron.spi.options import Secret
from heron_scheduler_kit.managed.sealed_cluster import SealedOptions

__all__ = ["AuroraOptions"]

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Positive = Annotated[int, msgspec.Meta(ge=1)]
_LIMIT = re.compile(r"limit:[1-9][0-9]*")


class AuroraOptions(SealedOptions, frozen=True, kw_only=True):
    """The schedulers of Aurora, who asks them, and where and as what containers run.

    - `addresses` are tried in their order; the leader may be any of them, and no other host gets the credentials.
    - `cluster` is the name of the cluster, as in the path of a job; it must be that of the schedulers.
    - `environment` is that of a job for whose submission nobody has named one.
    - `login` and `password` are for basic authentication.
    - `ca_file` has the certificates that sign those of the schedulers; empty: those of the system.
    - `tier` says whether others may take the place of containers.
    - `constraints` choose hosts, in the words of Aurora: an attribute, and values, ``!VALUES`` or ``limit:N``.
    - `image` is what containers run; without one, the hosts have Heron. `containerizer` starts it.
    - `batch` is how many instances a job update starts at a time, and `watch_s` how long each must run.
    - `observer_port` is that of the Thermos observers, which show the output of containers.
    - `page` is the address of Aurora's web UI for people; empty: the first of `addresses`.
    """

    addresses: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("http://127.0.0.1:8081",)
    cluster: Annotated[str, msgspec.Meta(pattern=r"^[\w.-]+$")]
    environment: Annotated[str, msgspec.Meta(pattern=r"^[\w.-]+$")] = "devel"
    login: str = ""
    password: Secret = ""
    ca_file: str = ""
    tier: Literal["preemptible", "preferred"] = "preemptible"
    priority: _Count = 0
    constraints: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it for each value
    image: str = ""
    containerizer: Literal["docker", "mesos"] = "mesos"
    contact: str = ""
    batch: _Positive = 10
    watch_s: _Count = 1
    observer_port: _Positive = 1338
    page: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for each in self.addresses:
            parts = urlsplit(each)
            if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
                msg = "addresses: one of them is not an address of Aurora; use https://HOST:8081 without credentials"
                raise ValueError(msg)
        if not (self.password.isascii() and self.password.isprintable()):
            msg = "password: it has characters outside of ASCII, or line ends; remove them"
            raise ValueError(msg)
        for name, value in self.constraints.items():
            if not value.strip("!, ") or (value.startswith("limit:") and not _LIMIT.fullmatch(value)):
                msg = f"constraints: {name} is {value!r}; use VALUE,VALUE, !VALUE,VALUE or limit:N"
                raise ValueError(msg)
