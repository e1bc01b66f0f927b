"""The driver's section of a profile."""

from __future__ import annotations

from typing import Annotated

import msgspec

from heron.spi.options import Secret
from heron_scheduler_kit.managed.managed_options import ManagedOptions

__all__ = ["NomadOptions"]

_FIXED = frozenset({"args", "command", "image"})


class NomadOptions(ManagedOptions, frozen=True, kw_only=True):
    """The cluster, the task driver, and where containers run.

    - `address`, `namespace`, `region`, `token`: empty for the variables of Nomad's own tools (``NOMAD_ADDR``, …).
    - `task_driver` starts the processes. `image` is for drivers with images; without one, the clients have Heron.
    - `task_config` has further fields of the task driver. `user` is the user of the processes; empty: that of the
      driver.
    - `cpu_mhz` is what one core of the packing plan requests.
    - `datacenters`, `node_pool` and `constraints` choose clients. A constraint is ATTRIBUTE, OPERATOR and VALUE.
    - `containers_per_client` is the most containers of a topology on one client; 0: any number.
    - `env` are variables of every container, which every reader of the job sees.
    - `page` is the address of Nomad's web UI for people; empty: that of the server.
    """

    address: str = ""
    namespace: str = ""
    region: str = ""
    token: Secret = ""
    task_driver: Annotated[str, msgspec.Meta(min_length=1)] = "exec"
    image: str = ""
    task_config: dict[str, object] = {}  # noqa: RUF012 - msgspec copies it for each value
    user: str = ""
    cpu_mhz: Annotated[int, msgspec.Meta(ge=1)] = 1000
    datacenters: tuple[str, ...] = ("*",)
    node_pool: str = ""
    constraints: tuple[tuple[str, str, str], ...] = ()
    containers_per_client: Annotated[int, msgspec.Meta(ge=0)] = 0
    priority: Annotated[int, msgspec.Meta(ge=1, le=100)] = 50
    env: dict[str, str] = {}  # noqa: RUF012
    page: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if taken := sorted(_FIXED & self.task_config.keys()):
            msg = f"task_config: {', '.join(taken)} cannot be set, because the scheduler sets it; remove it"
            raise ValueError(msg)
