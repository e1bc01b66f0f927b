"""The engine's section of a profile."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["BatchOptions", "StreamingOptions"]

_Positive = Annotated[float, msgspec.Meta(gt=0.0)]


class BatchOptions(msgspec.Struct, frozen=True):
    """Where Spark runs, and in how many parts.

    - `python` is the interpreter on the workers; empty for the path of this interpreter.
    - `archives` and `py_files` are copied to workers: environments and code.
    - `driver_host` is the address at which workers reach this machine.
    - `slots` is the number of tasks behind a shuffle; 0 for the number of cores that Spark has.
    - `conf` holds further settings of Spark.
    - `root` is the folder of what a run keeps while it lasts.
    """

    master: Annotated[str, msgspec.Meta(min_length=1)] = "local[*]"
    python: str = ""
    archives: tuple[str, ...] = ()
    py_files: tuple[str, ...] = ()
    driver_host: str = ""
    slots: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0
    conf: dict[str, str | bool | int | float] = {}  # msgspec copies it for each value
    root: Annotated[str, msgspec.Meta(min_length=1)] = "~/.heron/pipelines"

    @property
    def is_local(self) -> bool:
        """Whether tasks run on this machine."""
        return self.master.startswith("local")

    @property
    def spark_conf(self) -> dict[str, str]:
        """`conf` as Spark reads it: strings, with ``true`` and ``false`` in lower case."""
        return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in self.conf.items()}


class StreamingOptions(BatchOptions, frozen=True):
    """How micro-batches are made; times in seconds.

    - `checkpoint` is a folder that outlives the run: a path, or a URI that Arrow knows (``hdfs://``, ``s3://``).
    - `trigger_s` is the least time between the begins of two batches; 0 for one after the other.
    - `available_now` ends the run when the sources have nothing more.
    - `batch_rows` and `batch_s` limit what one batch reads of a source partition.
    - `idle_s` is the pause after a batch without elements.
    """

    checkpoint: str = ""
    trigger_s: Annotated[float, msgspec.Meta(ge=0.0)] = 0.0
    available_now: bool = False
    batch_rows: Annotated[int, msgspec.Meta(ge=1)] = 100_000
    batch_s: _Positive = 1.0
    idle_s: _Positive = 0.1
