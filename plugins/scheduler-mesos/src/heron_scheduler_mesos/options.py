"""The driver's section of a profile."""

from __future__ import annotations

from typing import Annotated

import msgspec

from heron.spi.options import Secret
from heron_scheduler_kit.managed.managed_options import ManagedOptions
from heron_scheduler_mesos.constraints import Constraint, problem

__all__ = ["MesosOptions"]

_Positive = Annotated[float, msgspec.Meta(gt=0.0)]


class MesosOptions(ManagedOptions, frozen=True, kw_only=True):
    """The masters and how to sign in there, and where containers run; durations in seconds.

    - `root` is the folder of the jobs, on the machine that submits.
    - `masters` are URLs of masters, in any order; the leading one is found.
    - `principal` and `secret` sign in; `ca_file` has the certificates of the masters' and agents' issuers.
    - `role` is the role whose offers are taken; `user` runs the containers; empty: the user of the command.
    - `constraints` choose agents, in the words of Marathon: FIELD, OPERATOR, VALUE.
    - `key_file` has the key that opens the specs of containers, with their secrets: here and on each agent.
    - `failover_timeout_s` is how long containers run on without a supervisor.
    - `silence_s` is how long a master may send nothing, heartbeats included, before it counts as lost.
    - `env` are variables of every container, which every reader of the state of Mesos sees.
    - `page` is the URL of the web page of Mesos for people; empty: that of the first master.
    """

    root: Annotated[str, msgspec.Meta(min_length=1)] = "~/.heron/mesos"
    masters: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("http://127.0.0.1:5050",)
    principal: str = ""
    secret: Secret = ""
    ca_file: str = ""
    role: Annotated[str, msgspec.Meta(min_length=1)] = "*"
    user: str = ""
    constraints: tuple[Constraint, ...] = ()
    key_file: Annotated[str, msgspec.Meta(min_length=1)] = "/etc/heron/mesos.key"
    failover_timeout_s: _Positive = 86400.0  # a day: a supervisor on a broken machine is missed by then
    silence_s: _Positive = 75.0  # five heartbeats, as Mesos recommends
    env: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it for each value
    page: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for each in self.constraints:
            if why := problem(each):
                msg = f"constraints: {list(each)} {why}"
                raise ValueError(msg)
        if bool(self.principal) != bool(self.secret):
            msg = "principal and secret: set both, or none of them"
            raise ValueError(msg)

    @property
    def take_over_s(self) -> float:
        """Seconds until the supervisor must report that the job runs, or why it does not.

        That is `start_s`, and the time in which it starts itself, also on a busy machine.
        """
        return min(self.start_s, 20.0) + 9.0
