"""A client of boto3 for any service of AWS, with the access of the options."""

from __future__ import annotations

from pathlib import Path

import boto3
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from heron.errors import ConfigError
from heron_s3_kit.place import S3Place

__all__ = ["aws_client"]

_CONNECT_S = 5.0
_ANSWER_S = 10.0  # two attempts, with the time to connect, stay within the contract's 30 s
_ATTEMPTS = 2


def aws_client(
    service: str, options: S3Place, section: str, timeout_s: float | None = None, **config: object
) -> BaseClient:
    """Return a client, which connects with its first call. With `timeout_s`, a call is tried once, within that time.

    `config` are further arguments of botocore's `Config`.

    Raises:
        ConfigError: when boto3 refuses the options of this section of the profile.
    """
    try:
        session = boto3.session.Session(
            aws_access_key_id=options.access_key_id or None,
            aws_secret_access_key=options.secret_access_key or None,
            aws_session_token=options.session_token or None,
            region_name=options.region or None,
            profile_name=options.aws_profile or None,
        )
        return session.client(
            service,
            endpoint_url=options.endpoint_url or None,
            verify=str(Path(options.ca_file).expanduser()) if options.ca_file else None,
            config=Config(
                connect_timeout=min(_CONNECT_S, timeout_s / 2) if timeout_s else _CONNECT_S,
                read_timeout=min(_ANSWER_S, timeout_s / 2) if timeout_s else _ANSWER_S,
                retries={"mode": "standard", "total_max_attempts": _ATTEMPTS if timeout_s is None else 1},
                **config,
            ),
        )
    except (BotoCoreError, ValueError) as error:
        msg = f"{section}: boto3 refuses the options: {error}; check region, endpoint_url and aws_profile"
        raise ConfigError(msg) from (None if options.secret_access_key else error)
