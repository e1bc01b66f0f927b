"""The options that drivers for HDFS share, and the check of their folder."""

from __future__ import annotations

from typing import Annotated

import msgspec

from heron.spi.options import Secret
from heron_hdfs_kit.web_hdfs import HdfsErrors, WebHdfs

__all__ = ["HdfsPlace", "HdfsRoot"]

_URL = r"^https?://[^/;?#\s]+/?(;https?://[^/;?#\s]+/?)*$"
_ROOT = r"^(/[A-Za-z0-9_.,=@+-]+)+$"

HdfsRoot = Annotated[str, msgspec.Meta(pattern=_ROOT)]
"""The path of a folder."""


class HdfsPlace(msgspec.Struct, frozen=True):
    """The options of a driver for HDFS: a name node, a folder, and a user."""

    url: Annotated[str, msgspec.Meta(pattern=_URL)]
    root: HdfsRoot
    user: str = ""
    token: Secret = ""

    def __post_init__(self) -> None:
        if {".", ".."} & set(self.root.split("/")):
            message = f"root {self.root!r} contains . or ..; give the path without them"
            raise ValueError(message)

    def connected(self, errors: HdfsErrors) -> WebHdfs:
        """Return a session for one operation; the first call connects."""
        return WebHdfs(self.url, self.user, self.token, errors)

    def check(self, errors: HdfsErrors, timeout_s: float, first: str) -> str:
        """Ask whether HDFS answers and the folder can be one; `first` is what creates it (``upload``)."""
        with self.connected(errors) as hdfs:
            hdfs.limit(timeout_s)
            found = hdfs.entry(self.root)
        if found is not None and not found.is_folder:
            msg = f"{self.root} in HDFS at {self.url} is a file; choose another {errors.section}.root"
            raise errors.refused(msg)
        missing = "" if found else f", which the first {first} creates"
        return f"HDFS at {self.url}, folder {self.root}{missing}"
