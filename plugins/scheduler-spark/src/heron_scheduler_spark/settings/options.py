"""The driver's section of a profile."""

from __future__ import annotations

from typing import Annotated

import msgspec

from heron_scheduler_kit.options import SupervisedOptions

__all__ = ["SparkOptions"]


_MARGIN_S = 3.0  # heartbeats are a second apart on either side, and a busy machine is late
_SHORTEST_S = 2.0  # two heartbeats


class SparkOptions(SupervisedOptions, frozen=True):
    """The master and how to use it; durations in seconds.

    - `python` is the interpreter on the workers; empty for the path of this interpreter.
    - `archives` and `py_files` are copied to workers: environments and code.
    - `driver_host` is the address at which workers reach this machine; empty for the address from which this machine
      reaches the master. `driver_bind` is where the driver listens; empty for `driver_host`.
    - `jvm_heap_mb` is the heap of a container's JVM, besides the memory in the packing plan.
    - `hadoop_conf_dir` has Hadoop's configuration, for YARN.
    - `conf` holds further settings of Spark.
    """

    root: Annotated[str, msgspec.Meta(min_length=1)] = "~/.heron/spark"
    master: Annotated[str, msgspec.Meta(min_length=1)] = "local"
    python: str = ""
    archives: tuple[str, ...] = ()
    py_files: tuple[str, ...] = ()
    driver_host: str = ""
    driver_bind: str = ""
    jvm_heap_mb: Annotated[int, msgspec.Meta(ge=256)] = 512
    hadoop_conf_dir: str = ""
    conf: dict[str, str | bool | int | float] = {}  # noqa: RUF012  # msgspec copies it for each value
    start_s: Annotated[float, msgspec.Meta(gt=0.0)] = 45.0
    silence_s: Annotated[float, msgspec.Meta(gt=0.0)] = 15.0

    def __post_init__(self) -> None:
        shortest_s = self.stop_grace_s + _MARGIN_S + _SHORTEST_S
        if self.silence_s < shortest_s:
            msg = (
                f"silence_s of {self.silence_s:g} s is too short where stop_grace_s is {self.stop_grace_s:g} s: a "
                "container that lost the driver must end before another one starts in its place; set it to "
                f"{shortest_s:g} s or more"
            )
            raise ValueError(msg)

    @property
    def spark_conf(self) -> dict[str, str]:
        """`conf` as Spark reads it: strings, with ``true`` and ``false`` in lower case."""
        return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in self.conf.items()}

    @property
    def task_silence_s(self) -> float:
        """After this silence of the driver a task ends its container.

        The container has then ended, grace time included, before the driver gives the task up.
        """
        return self.silence_s - self.stop_grace_s - _MARGIN_S

    @property
    def take_over_s(self) -> float:
        return self.start_s + 5.0
