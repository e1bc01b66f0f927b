"""The options that drivers for S3 share."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from heron.spi.options import Secret

__all__ = ["S3Place"]


class S3Place(msgspec.Struct, frozen=True):
    """The options of a driver for S3: a bucket, and a way to it.

    boto3 looks for an empty value in environment, files and machine role.
    """

    bucket: Annotated[str, msgspec.Meta(min_length=1)]
    prefix: Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z0-9!_.*'()=-]+(/[A-Za-z0-9!_.*'()=-]+)*)?$")] = ""
    region: str = ""
    endpoint_url: Annotated[str, msgspec.Meta(pattern=r"^(https?://.+)?$")] = ""
    addressing: Literal["auto", "path", "virtual"] = "auto"
    aws_profile: str = ""
    access_key_id: str = ""
    secret_access_key: Secret = ""
    session_token: Secret = ""
    ca_file: str = ""

    def __post_init__(self) -> None:
        if bool(self.access_key_id) != bool(self.secret_access_key):
            msg = "access_key_id and secret_access_key belong together; give both or neither"
            raise ValueError(msg)
        if self.session_token and not self.access_key_id:
            msg = "session_token belongs to access_key_id and secret_access_key; give all three"
            raise ValueError(msg)
