"""The scheduler driver ``local``: runs each job as processes of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from heron.spi.options import decode_options
from heron_scheduler_kit.supervised_scheduler import SupervisedScheduler
from heron_scheduler_local.options import LocalOptions

__all__ = ["LocalScheduler"]


class LocalScheduler(SupervisedScheduler):
    """Runs each job under a separate supervisor process, which starts executors as its children."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"attached", "restart", "update"})
    options_type: ClassVar[type] = LocalOptions
    supervisor: ClassVar[str] = "heron_scheduler_local.supervisor"

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(decode_options(options, LocalOptions, "scheduler"))
