"""The driver's section of a profile."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from heron.spi.options import Secret

__all__ = ["ZookeeperOptions"]

_SERVER = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?")
_STEP = re.compile(r"[A-Za-z0-9._-]+")


class ZookeeperOptions(msgspec.Struct, frozen=True):
    """The keys of the section.

    `hosts` is ``HOST:PORT`` of some or all servers, separated by commas. `root` is the znode above all others. With
    `username` and `password`, only that user has access to the znodes. `session_timeout_s` is the time for which the
    ensemble keeps the nodes of a silent holder. `timeout_s` is the time for which a call waits for an answer.
    `lock_dir` is the folder of the session locks (see `session_lock`); ``~`` is the user's home.
    """

    hosts: str = "127.0.0.1:2181"
    root: str = "/heron"
    username: str = ""
    password: Secret = ""
    session_timeout_s: Annotated[float, msgspec.Meta(ge=0.4, le=600)] = 10.0
    timeout_s: Annotated[float, msgspec.Meta(ge=0.1, le=9)] = 8.0
    lock_dir: Annotated[str, msgspec.Meta(min_length=1)] = "~/.heron/zookeeper"

    def __post_init__(self) -> None:
        """Refuse values that ZooKeeper would refuse later, or interpret in another way."""
        wrong = [each for each in self.hosts.split(",") if not _SERVER.fullmatch(each.strip())]
        if wrong:
            message = f"'hosts' has {wrong[0]!r} where HOST:PORT is needed, separated by commas"
            raise ValueError(message)
        steps = self.root.split("/")
        if steps[0] or steps[1:2] == ["zookeeper"] or not all(map(_allowed, steps[1:])):
            message = f"'root' is {self.root!r}; use /NAME or /NAME/NAME of A-Z a-z 0-9 . _ - (and not /zookeeper)"
            raise ValueError(message)
        if bool(self.username) != bool(self.password) or ":" in self.username:
            message = "'username' and 'password' belong together, and a username contains no colon"
            raise ValueError(message)


def _allowed(step: str) -> bool:
    return bool(_STEP.fullmatch(step)) and step not in {".", ".."}
