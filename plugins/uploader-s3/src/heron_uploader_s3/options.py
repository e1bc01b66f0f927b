"""The driver's section of a profile."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from heron.spi.options import Secret

__all__ = ["S3Options"]

_LEAST_PART_BYTES = 5 * 1024 * 1024  # S3's own limit for all parts but the last
_MOST_PART_BYTES = 1024 * 1024 * 1024


class S3Options(msgspec.Struct, frozen=True):
    """Where the packages are. What is "" comes from boto3's usual places: environment, files, the machine's role."""

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
    part_bytes: Annotated[int, msgspec.Meta(ge=_LEAST_PART_BYTES, le=_MOST_PART_BYTES)] = 8 * 1024 * 1024

    def __post_init__(self) -> None:
        if bool(self.access_key_id) != bool(self.secret_access_key):
            msg = "access_key_id and secret_access_key belong together; give both or neither"
            raise ValueError(msg)
        if self.session_token and not self.access_key_id:
            msg = "session_token belongs to access_key_id and secret_access_key; give all three"
            raise ValueError(msg)
