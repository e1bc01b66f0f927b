"""The process of a task: ``python -m heron_scheduler_ecs.task_process``. It becomes the launcher.

ECS puts the launch file into a variable. This process writes it into a file in memory with mode 0600 and drops the
variable, so that no process of the container inherits it. It also finds the address of the task.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import urllib.request
from collections.abc import Mapping

import msgspec

from heron_scheduler_ecs.task_spec import LAUNCH
from heron_scheduler_kit.managed.launch_file import write_launch_file
from heron_scheduler_kit.managed.launcher import HOST_ADDRESS

__all__ = ["address_of"]

_LAUNCHER = "heron_scheduler_kit.managed.launcher"
_METADATA = "ECS_CONTAINER_METADATA_URI_V4"
_ANSWER_S = 5.0  # of the agent, on the same machine


class _Network(msgspec.Struct):
    IPv4Addresses: tuple[str, ...] = ()


def address_of(environment: Mapping[str, str]) -> str:
    """Return the address of the task from the agent's metadata; "" without an agent.

    Raises:
        OSError: when the agent does not answer.
    """
    url = environment.get(_METADATA)
    if not url:
        return ""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy does not reach the agent
    with direct.open(url, timeout=_ANSWER_S) as answer:
        networks = msgspec.convert(json.load(answer)["Networks"], list[_Network])
    return next((address for each in networks for address in each.IPv4Addresses), "")


def _main() -> None:
    launch = os.environ.pop(LAUNCH, "")
    if not launch:
        sys.exit(f"the variable {LAUNCH} is missing: ECS starts this program from a task definition of Heron")
    path = f"/proc/self/fd/{write_launch_file(base64.b64decode(launch))}"
    if HOST_ADDRESS not in os.environ and (address := address_of(os.environ)):
        os.environ[HOST_ADDRESS] = address
    os.execv(sys.executable, [sys.executable, "-P", "-m", _LAUNCHER, path])  # noqa: S606


if __name__ == "__main__":
    _main()
