"""The driver's section of a profile."""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from heron.spi.options import Secret
from heron_scheduler_kit.managed.sealed_cluster import SealedOptions

__all__ = ["MarathonOptions"]

_GROUP = re.compile(r"(/[a-z0-9]([a-z0-9-]*[a-z0-9])?)+")
_Positive = Annotated[int, msgspec.Meta(ge=1)]


class MarathonOptions(SealedOptions, frozen=True, kw_only=True):
    """The servers of Marathon, who asks them, and where and as what containers run.

    - `addresses` are tried in their order; each server of Marathon asks its leader.
    - `token` is one of DC/OS. `login` and `password` are for a Marathon with basic authentication.
    - `ca_file` has the certificates that sign those of the servers; empty: those of the system.
    - `group` has one group for each topology.
    - `image` is what containers run; without one, the agents have Heron. `containerizer` starts it.
    - `user` is the user of the processes; empty: that of Marathon.
    - `constraints` choose agents, in the words of Marathon: ATTRIBUTE, OPERATOR and mostly VALUE.
    - `roles` are the roles whose resources may be used; empty: those that Marathon accepts by default.
    - `unreachable_s` is how long an agent may be unreachable until its containers start elsewhere.
    - `env` are variables of every container, which every reader of the apps sees.
    - `mesos` is the address of Mesos' master, which leads to the output of containers; empty: what Marathon says.
    - `page` is the address of Marathon's web UI for people; empty: the first of `addresses`.
    """

    addresses: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("http://127.0.0.1:8080",)
    token: Secret = ""
    login: str = ""
    password: Secret = ""
    ca_file: str = ""
    group: str = "/heron"
    image: str = ""
    containerizer: Literal["docker", "mesos"] = "mesos"
    user: str = ""
    constraints: tuple[tuple[str, ...], ...] = ()
    roles: tuple[str, ...] = ()
    unreachable_s: _Positive = 1
    max_launch_delay_s: _Positive = 60
    env: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it for each value
    mesos: str = ""
    page: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for each in self.addresses:
            parts = urlsplit(each)
            if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
                msg = "addresses: one of them is not an address of Marathon; use https://HOST:8443 without credentials"
                raise ValueError(msg)
        if not _GROUP.fullmatch(self.group):
            msg = f"group is {self.group!r}; use a path of small letters, digits and hyphens, such as /heron"
            raise ValueError(msg)
        if self.token and self.login:
            msg = "token and login are both set; DC/OS needs the token, other Marathons the login: remove one"
            raise ValueError(msg)
        for secret in (self.token, self.login, self.password):
            if not (secret.isascii() and secret.isprintable()):
                msg = "token, login or password: it has characters outside of ASCII, or line ends; remove them"
                raise ValueError(msg)
        if any(len(each) not in {2, 3} for each in self.constraints):
            msg = f'constraints is {self.constraints!r}; each is a list such as ["rack", "LIKE", "rack-[1-3]"]'
            raise ValueError(msg)
