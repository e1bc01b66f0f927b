"""The options of the scheduler `yarn`."""

from __future__ import annotations

from typing import Annotated

import msgspec

from heron.spi.options import Secret
from heron_scheduler_kit.managed.managed_options import ManagedOptions

__all__ = ["YarnOptions"]

_ADDRESS = r"^(https?://[^/;?#\s]+/?(;https?://[^/;?#\s]+/?)*)?$"
_Path = Annotated[str, msgspec.Meta(pattern=r"^((/[A-Za-z0-9_.,=@+-]+)+)?$")]
_Word = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_./@+=:-]*$")]


class YarnOptions(ManagedOptions, frozen=True):
    """The cluster, its HDFS, and what services get.

    - `address` is the web address of the resource manager, several separated by ``;``; empty: that of
      ``yarn-site.xml`` in the folder `conf`.
    - `hdfs` is the web address of the name node, several separated by ``;``; empty: that of ``hdfs-site.xml`` there.
    - `conf` is the folder with the files of Hadoop; empty for the variable ``HADOOP_CONF_DIR``.
    - `user` owns services and files; empty for the variable ``HADOOP_USER_NAME``, then the user of this process.
    - `token` is a delegation token of HDFS.
    - `root` is the folder of the jobs in HDFS; empty for ``/user/USER/.heron/yarn``.
    - `queue` is the queue of the services; empty for the default of the cluster.
    - `node_label` is the label (partition) of the nodes that may run containers; empty: those without a label.
    - `spread` keeps topology managers on different nodes. Both need placement constraints in the resource manager.
    - `env` are variables of every container, which every user of the cluster can see.
    """

    python: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_./+-]+$")] = "python3"
    address: Annotated[str, msgspec.Meta(pattern=_ADDRESS)] = ""
    hdfs: Annotated[str, msgspec.Meta(pattern=_ADDRESS)] = ""
    conf: str = ""
    user: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]*$")] = ""
    token: Secret = ""
    root: _Path = ""
    queue: _Word = ""
    node_label: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]*$")] = ""
    spread: bool = False
    env: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it for each value
