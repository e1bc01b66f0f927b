"""Calls of the services of AWS that take JSON: with pages, repeats when AWS throttles, and translated errors."""

from __future__ import annotations

import random
import threading
from collections.abc import Collection, Mapping
from functools import cache
from itertools import count
from typing import cast

from botocore.exceptions import ClientError

from heron.clock import monotonic_s
from heron_s3_kit.aws_client import aws_client
from heron_s3_kit.place import S3Place
from heron_s3_kit.s3_errors import S3Errors, code_of, translated

__all__ = ["AwsApi"]

_Json = dict[str, object]

_TIMEOUT_S = 8.0  # half of it to connect, half for an answer
_CALL_S = 5.0  # a scheduler's call takes 5 s at most
_PAGE = 100  # the most that AWS allows in most lists
_THROTTLED = frozenset({"ThrottlingException", "Throttling", "RequestLimitExceeded", "TooManyRequestsException"})
_FIRST_WAIT_S = 0.2
_LONGEST_WAIT_S = 2.0


class AwsApi:
    """One account and one region. Used from one thread.

    botocore repeats nothing: its retries of a request without an answer would take longer than a call may. A throttled
    request is repeated here, after a random part of a wait that doubles (full jitter), as long as the call has time.
    """

    def __init__(self, options: S3Place, errors: S3Errors, service: str, where: str) -> None:
        """The first call connects. `where` is for messages, `service` the main one."""
        self._main = service
        self._client = cache(lambda service: aws_client(service, options, errors.section, _TIMEOUT_S))
        self._errors = errors
        self._where = where
        self._pause = threading.Event()

    @property
    def region(self) -> str:
        """The region of the options, or that which boto3 finds. Raises ConfigError without one."""
        return str(self._client(self._main).meta.region_name)

    @property
    def partition(self) -> str:
        """The partition of the region, such as ``aws`` or ``aws-cn``."""
        return str(self._client(self._main).meta.partition)

    @property
    def where(self) -> str:
        """What `where` says, and the region."""
        return f"{self._where} in {self.region}"

    def call(
        self, service: str, operation: str, arguments: Mapping[str, object], unless: Collection[str] = ()
    ) -> _Json:
        """Return the answer; an empty one when AWS refuses with a code in `unless`.

        Raises the errors of `S3Errors`. After no answer, the outcome is unknown.
        """
        with translated(f"{service}:{operation}", self.where, self._errors):
            deadline_s = monotonic_s() + _CALL_S
            for attempt in count():
                try:
                    return cast("_Json", getattr(self._client(service), operation)(**arguments))
                except ClientError as error:
                    if code_of(error) in unless:
                        return {}
                    wait_s = random.uniform(0, min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**attempt))  # noqa: S311
                    if code_of(error) not in _THROTTLED or monotonic_s() + wait_s > deadline_s:
                        raise
                self._pause.wait(wait_s)
        raise AssertionError

    def listed(self, service: str, operation: str, key: str, arguments: Mapping[str, object]) -> list[str]:
        """Return the names in all pages of a list, which are under `key`."""
        found: list[str] = []
        token: _Json = {"maxResults": _PAGE}
        while True:
            page = self.call(service, operation, {**arguments, **token})
            found += cast("list[str]", page[key])
            if not page.get("nextToken"):
                return found
            token["nextToken"] = page["nextToken"]
