"""The options that all managed schedulers share."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Annotated, Literal

import msgspec

from heron_scheduler_kit.options import Seconds

__all__ = ["ManagedOptions"]

_Count = Annotated[int, msgspec.Meta(ge=0)]
_WHEELS = re.compile(r"((?:https?:/)?/[^#\s]+)#sha256=([0-9a-f]{64})")


class ManagedOptions(msgspec.Struct, frozen=True):
    """What containers run, what they request besides the packing plan, and how they are restarted and stopped.

    - `python` is the interpreter in the containers.
    - `install` is where it finds Heron: it is `present` there, or `wheels` names an archive of wheels, which each
      container unpacks.
    - `executor` is the command that starts an executor; empty for the executor of that interpreter.
    - `executor_cpu` and `executor_memory_mb` are added to the request of each container, for executor and launcher.
    - `manager_cpu` and `manager_memory_mb` are the request of container 0, which is not in the packing plan.
    - `restart_*` and `stable_s` have the meaning that they have in `SupervisedOptions`.
    - `stop_grace_s` is the time for a clean stop of an executor; the cluster gives a container `end_s` before it kills.
    - `start_s` is how long a command waits for a container that it adds or restarts. A cluster that must first
      pull an image or add a machine may need minutes.
    """

    python: Annotated[str, msgspec.Meta(min_length=1)] = "python3"
    install: Literal["present", "wheels"] = "present"
    wheels: str = ""
    executor: tuple[str, ...] = ()
    executor_cpu: Annotated[float, msgspec.Meta(ge=0.0)] = 0.1
    executor_memory_mb: _Count = 128
    manager_cpu: Annotated[float, msgspec.Meta(ge=0.0)] = 0.5
    manager_memory_mb: _Count = 384
    restart_backoff_s: Seconds = 0.1
    restart_backoff_max_s: Seconds = 10.0
    restart_limit: _Count = 1000
    stable_s: Seconds = 30.0
    stop_grace_s: Annotated[float, msgspec.Meta(ge=0.0, le=8.0)] = 6.0  # `kill` has 15 s in all
    start_s: Annotated[float, msgspec.Meta(gt=0.0)] = (
        20.0  # the contract allows 30 s; a cluster that adds machines needs more
    )

    def __post_init__(self) -> None:
        if bool(self.wheels) != (self.install == "wheels"):
            msg = f"install is {self.install!r} and wheels is {self.wheels!r}; set both, or none of them"
            raise ValueError(msg)
        if self.wheels and not _WHEELS.fullmatch(self.wheels):
            shape = "PATH#sha256=HEX or https://HOST/PATH#sha256=HEX, with the 64 digits of `sha256sum`"
            msg = f"wheels is {self.wheels!r}; use {shape}"
            raise ValueError(msg)

    def python_command(self, module: str, *arguments: str, folder: str = "") -> tuple[str, ...]:
        """Return the command that runs a module in a container.

        Wheels are unpacked in `folder`; empty: a folder of the user in that for temporary files. The command has no
        ``$``, which clusters would replace, besides that in the arguments.
        """
        if not self.wheels:
            return (self.python, "-P", "-m", module, *arguments)
        place, _, sha256 = self.wheels.partition("#sha256=")
        source = files(__package__).joinpath("wheel_start.py").read_text(encoding="utf-8")
        return (self.python, "-P", "-c", source, place, sha256, folder, module, *arguments)

    @property
    def end_s(self) -> float:
        """Seconds from SIGTERM to a launcher until the cluster kills the container."""
        return self.stop_grace_s + 2.0
