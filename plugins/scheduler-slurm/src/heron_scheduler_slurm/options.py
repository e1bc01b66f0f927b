"""The options of the scheduler `slurm`."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from heron_scheduler_kit.managed.managed_options import ManagedOptions

__all__ = ["SlurmOptions"]

_Word = Annotated[str, msgspec.Meta(pattern=r"^[\w.,:+-]*$")]
_EXTRA = re.compile(r"(--[a-z][a-z-]*)(=[^\n\r]*)?")
_OURS = frozenset(
    {"array", "comment", "cpus-per-task", "dependency", "error", "job-name", "mem", "nodes", "no-requeue", "ntasks"}
    | {"open-mode", "output", "requeue", "signal", "time", "wrap"}
)


class SlurmOptions(ManagedOptions, frozen=True):
    """Where jobs go, what limits them, and the folder that all nodes share.

    - `root` is a folder on a file system that the nodes and the hosts of commands share.
    - `python` is the interpreter on the nodes; empty for the path of this interpreter.
    - `partition`, `account`, `qos` and `time_limit` are the options of ``sbatch`` with these names; empty: the site's.
    - `extra` are further options of ``sbatch``, such as ``--constraint=ib``.
    - `warn_s` is how long before the time limit a container moves to its next job.
    - `on_warning` is a command that runs then, before the container ends: words, in which ``{topology}`` is its name.
    - `programs` is the folder of Slurm's commands; empty for the PATH.
    - `environment` names the variables that jobs get from the environment of the command that submits.
    """

    root: Annotated[str, msgspec.Meta(min_length=1)] = "~/.heron/slurm"
    python: str = ""
    partition: _Word = ""
    account: _Word = ""
    qos: _Word = ""
    time_limit: _Word = ""
    extra: tuple[str, ...] = ()
    warn_s: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 60
    on_warning: tuple[str, ...] = ()
    programs: str = ""
    environment: tuple[_Word, ...] = ("HOME", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SLURM_CONF", "USER")

    def __post_init__(self) -> None:
        super().__post_init__()
        for each in self.extra:
            option = _EXTRA.fullmatch(each)
            if option is None:
                msg = f"extra has {each!r}; give long options of sbatch, such as '--constraint=ib'"
                raise ValueError(msg)
            if option[1].removeprefix("--") in _OURS:
                msg = f"extra has {option[1]}, which the scheduler sets itself; see its other options"
                raise ValueError(msg)
